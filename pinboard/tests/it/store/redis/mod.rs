//! The store on Redis.

mod conformance;
mod harness;

use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{RedisStore, RedisUrl, StoreOptions};
use pinned_domain::Domain;

/// What most tests are content with: leases that do not run out, and no quarantine to speak of.
fn options() -> StoreOptions {
    StoreOptions {
        lease_ttl: Duration::from_secs(60),
        quarantine: Duration::from_millis(10),
        shards: 4,
    }
}

fn url(text: &str) -> RedisUrl {
    text.parse().expect("the launcher's URL is one")
}

fn open(text: &str, options: StoreOptions) -> Arc<RedisStore> {
    let store = RedisStore::open(&url(text), options, &Domain::real());
    Arc::new(store.expect("it needs no certificates"))
}
