//! The attestation of anonymous requests, kept for the second in which it was minted.
