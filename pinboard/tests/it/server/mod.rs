//! Tests of `server`.

mod heads;
mod lanes;
mod smuggling;
mod stopping;
