//! Durability: the stores of durable state, and each instance's log of what is on its way there.

mod claim;
mod frontier;
mod instance;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod row;
mod seam;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;

pub use claim::{Claim, InstanceKey, TrayKey};
pub use frontier::{Frontier, FrontierError, FrontierFailure, Receipt, Wait};
pub(crate) use frontier::{FrontierOwner, Segment};
pub(crate) use instance::StoreDurability;
#[doc(hidden)]
pub use instance::{LogOwner, StoreLog};
pub use memory::MemoryStore;
pub use row::{Doc, NotAnObject, Row, RowFilter, RowOp, RowState};
pub use seam::NoStateStore;
#[doc(hidden)]
pub use seam::{Durability, EffectLog};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{FenceLost, StateStore, StoreError, StoreFuture, prove_fences};
