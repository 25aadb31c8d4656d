//! The data plane: from a client's request to its worker and back (P5).
