//! Fleets: real processes, and the same in virtual time.

#[path = "../../../tests/it/executable.rs"]
mod executable;
mod fleet;
mod fleet_sim;
