//! Tests of `testing`: what other tests build on.

mod faulty;
mod plane;
mod stories;
mod worker;
