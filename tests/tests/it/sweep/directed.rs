//! Seams looked at one by one (S6.8, S6.9).
