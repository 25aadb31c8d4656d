use pinned::{PinnedHost, PinnedWorker, RunningWorker};

use super::Contender;
use crate::pinned_server::{Counter, options};

/// Exclusive turns of hosted instances, looked up by id, through the typed handle of their host.
pub struct PinnedInstances {
    ids: Box<[String]>,
    host: PinnedHost<Counter>,
    _running: RunningWorker,
}

impl Contender for PinnedInstances {
    const NAME: &'static str = "pinned";

    async fn start(ids: &[String]) -> Self {
        let worker = PinnedWorker::builder()
            .host_with::<Counter>(options())
            .build()
            .expect("the options are valid");
        let running = worker.run_lifespan().await.expect("it starts once");
        let host = worker.hosted::<Counter>().expect("it is hosted");
        for id in ids {
            host.write(id).await.expect("every id activates");
        }
        Self {
            ids: ids.into(),
            host,
            _running: running,
        }
    }

    async fn increment(&self, index: usize) -> u64 {
        let mut counter = self
            .host
            .write(&self.ids[index])
            .await
            .expect("the instance is live");
        counter.add_one().await
    }
}
