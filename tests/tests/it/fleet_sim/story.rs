//! The cluster story (S8).
