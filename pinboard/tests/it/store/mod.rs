//! Tests of `store`.

mod redis;
