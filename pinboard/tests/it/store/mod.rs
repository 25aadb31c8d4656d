//! Tests of `store`.

mod memory;
