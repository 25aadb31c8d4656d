//! Tests of `testing`: what other tests build on.

mod faulty;
mod plane;
mod registering;
mod stories;
mod worker;
