use tokio::sync::Mutex;

use super::Contender;
use crate::sharded::ShardedMap;

/// A `tokio::sync::Mutex` per counter in a sharded map, looked up by id: the least that one live value per id can cost.
pub struct MutexMap {
    ids: Box<[String]>,
    counters: ShardedMap<Mutex<u64>>,
}

impl Contender for MutexMap {
    const NAME: &'static str = "tokio mutex";

    async fn start(ids: &[String]) -> Self {
        let counters = ShardedMap::default();
        for id in ids {
            counters.get_or_default(id);
        }
        Self {
            ids: ids.into(),
            counters,
        }
    }

    async fn increment(&self, index: usize) -> u64 {
        let counter = self.counters.get_or_default(&self.ids[index]);
        let mut count = counter.lock().await;
        *count += 1;
        *count
    }
}
