//! Tests of `store`.

mod memory;
mod redis;
mod sabotage;
