//! Fleets: real processes, and the same in virtual time.

mod fleet;
mod fleet_sim;
#[path = "../../../tests/it/executable.rs"]
mod process;
