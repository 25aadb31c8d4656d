//! What one would write by hand for counters in memory: the servers that pinned is compared to.
//!
//! Both answer `POST /counters/{id}/increment` with the new count as a JSON number, and `POST /counters/{id}/stall` never.

mod axum;
mod hyper;

pub use self::{axum::axum_server, hyper::hyper_server};

use parking_lot::Mutex;

use crate::sharded::ShardedMap;

/// Counters by id, a mutex each.
#[derive(Default)]
struct Counters(ShardedMap<Mutex<u64>>);

impl Counters {
    fn increment(&self, id: &str) -> u64 {
        let counter = self.0.get_or_default(id);
        let mut count = counter.lock();
        *count += 1;
        *count
    }
}
