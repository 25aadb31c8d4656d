//! Log lines (P1.5).
