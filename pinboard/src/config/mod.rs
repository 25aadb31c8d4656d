//! Settings from the environment (P1.3).
