//! A way to the registry on which calls arrive twice.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinboard::testing::{HttpRegistry, RegistryAnswer, RegistryTransport};
use pinned_domain::{Domain, Rng};

/// How many calls are made again, later, by nobody who waits for an answer.
const TWICE: f64 = 0.05;

pub(super) struct Repeating {
    registry: Arc<HttpRegistry>,
    domain: Domain,
    dice: Rng,
}

impl Repeating {
    pub(super) fn new(registry: HttpRegistry, domain: Domain) -> Self {
        Self {
            registry: Arc::new(registry),
            dice: domain.rng("repeats").expect("a label"),
            domain,
        }
    }
}

impl RegistryTransport for Repeating {
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>> {
        if self.dice.uniform(0.0..1.0) < TWICE {
            let later = Duration::from_secs_f64(self.dice.uniform(0.0..3.0));
            let (registry, body, domain) = (
                Arc::clone(&self.registry),
                body.clone(),
                self.domain.clone(),
            );
            self.domain.spawn(async move {
                domain.sleep(later).await;
                let again = registry.call(path, body);
                // Nobody waits for it.
                let _ = domain.timeout(Duration::from_secs(5), again).await;
            });
        }
        self.registry.call(path, body)
    }
}
