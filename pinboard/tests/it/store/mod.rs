//! Tests of `store`.

mod memory;
mod sabotage;
