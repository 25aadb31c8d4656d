//! What operators ask of the registry (P3).
