//! A store that can fail.

mod faults;
mod op;
mod store;

pub use faults::{CutOff, StoreCall, StoreFault, StoreFaults};
pub use op::StoreOp;
pub use store::FaultyStore;
