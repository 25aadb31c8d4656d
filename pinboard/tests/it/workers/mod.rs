//! Tests of `workers`.

mod reading;
mod sweeping;
mod tokens;
