//! Durability: the stores of durable state, and each instance's log of what is on its way there.

mod claim;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod row;
mod seam;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;

pub use claim::{Claim, InstanceKey, TrayKey};
pub use memory::MemoryStore;
pub use row::{Doc, NotAnObject, Row, RowFilter, RowOp, RowState};
pub use seam::{Durability, EffectLog, Frontier, NoStateStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{FenceLost, StateStore, StoreError, StoreFuture, prove_fences};
