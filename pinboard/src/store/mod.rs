//! Where the fleet's state is kept: sessions, placements, orders, events.
//!
//! [`RegistryStore`] is the contract; every operation that it names is one atomic step, so that any number of nodes may
//! work on one store. [`MemoryStore`] serves one process, [`RedisStore`] a fleet.

mod contract;
mod error;
mod event;
mod memory;
mod order;
mod placement;
mod redis;
mod session;

pub use contract::{RegistryStore, StoreFuture, StoreOptions};
pub use error::StoreError;
pub use event::{Event, EventKind, EventPage};
pub use memory::{MemoryCopy, MemoryStore};
pub use order::{ClientRecord, Drain, FencedRow, MessageBody, QueuedMessage};
pub use placement::{
    Claim, Claimed, Expected, Fence, FenceState, Invalidation, PlacementKey, Reclaimed, Release,
    Row,
};
pub use redis::{InvalidRedisUrl, RedisStore, RedisUrl};
pub use session::{
    EndMode, Heartbeat, HeartbeatOutcome, NewSession, Registered, SessionChanges, SessionId,
    SessionRecord, SessionUpdate, SessionView,
};
