//! Tests of `placement`.
