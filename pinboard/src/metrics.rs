//! The names of the metrics (P11), and what they count.
