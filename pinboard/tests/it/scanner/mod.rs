//! Tests of `scanner`.
