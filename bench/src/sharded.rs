//! The sharded map that the hand-written contenders keep their counters in.

use std::sync::Arc;

use ahash::{AHashMap, RandomState};
use parking_lot::RwLock;

const SHARDS: usize = 64;

type Shard<V> = RwLock<AHashMap<Box<str>, Arc<V>>>;

/// A map from id to a shared value. A lookup takes the read half of one shard's lock; only a new id takes the write half.
pub struct ShardedMap<V> {
    hasher: RandomState,
    shards: Box<[Shard<V>]>,
}

impl<V: Default> ShardedMap<V> {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
        }
    }

    /// The value of `id`, made on first use.
    pub fn get_or_default(&self, id: &str) -> Arc<V> {
        let shard = &self.shards[self.hasher.hash_one(id) as usize % SHARDS];
        if let Some(value) = shard.read().get(id) {
            return Arc::clone(value);
        }
        Arc::clone(shard.write().entry(id.into()).or_default())
    }
}

impl<V: Default> Default for ShardedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}
