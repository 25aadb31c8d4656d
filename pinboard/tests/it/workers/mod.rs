//! Tests of `workers`.
