//! Anything at once: many tasks do what nodes and workers do, in any order, and what they saw is held against the
//! invariants of the trait afterwards.

mod check;
mod log;
mod run;

pub(super) use run::checks;
