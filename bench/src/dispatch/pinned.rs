use pinned::{Instance, PinnedHost, PinnedWorker, RunningWorker};

use super::Contender;
use crate::pinned_server::{Counter, options};

/// Exclusive turns of hosted instances, looked up by id, through the typed handle of their host.
pub struct PinnedInstances {
    ids: Box<[String]>,
    host: PinnedHost<Counter>,
    _running: RunningWorker,
}

/// Exclusive turns of hosted instances through handles that the caller already holds, as it does kameo's references.
pub struct PinnedHandles {
    instances: Box<[Instance<Counter>]>,
    _running: RunningWorker,
}

async fn host() -> (PinnedHost<Counter>, RunningWorker) {
    let worker = PinnedWorker::builder()
        .host_with::<Counter>(options())
        .build()
        .expect("the options are valid");
    let running = worker.run_lifespan().await.expect("it starts once");
    let host = worker.hosted::<Counter>().expect("it is hosted");
    (host, running)
}

impl Contender for PinnedInstances {
    const NAME: &'static str = "pinned, by id";

    async fn start(ids: &[String]) -> Self {
        let (host, running) = host().await;
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

impl Contender for PinnedHandles {
    const NAME: &'static str = "pinned, by handle";

    async fn start(ids: &[String]) -> Self {
        let (host, running) = host().await;
        let mut instances = Vec::with_capacity(ids.len());
        for id in ids {
            instances.push(host.instance(id).await.expect("every id activates"));
        }
        Self {
            instances: instances.into(),
            _running: running,
        }
    }

    async fn increment(&self, index: usize) -> u64 {
        let mut counter = self.instances[index]
            .write()
            .await
            .expect("the instance is live");
        counter.add_one().await
    }
}
