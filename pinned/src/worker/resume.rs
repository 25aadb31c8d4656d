//! Local mode: without a control plane the worker itself brings back the instances that have durable work (D8.7).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::iter;
use futures_util::{FutureExt, StreamExt};

use super::PinnedWorker;
use crate::api::refusal::{Refusal, Unavailable};
use crate::durability::{InstanceKey, StateStore};
use crate::error::ErrorChain;

/// How many instances are brought back at one time.
const AT_ONCE: usize = 64;
/// How many are looked up at one time.
const PAGE: usize = 256;
/// The least time that a page takes, so that a million of them does not stand in the way of requests.
const PACE: Duration = Duration::from_millis(50);
/// How long one is waited for. It goes on by itself; those behind it must not wait for a setup that never ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long between two looks.
const INTERVAL: Duration = Duration::from_secs(3);

/// Looks for marked rows at once, and again and again, until it is dropped.
pub(super) async fn run(worker: PinnedWorker, store: Arc<dyn StateStore>) {
    let domain = worker.domain().clone();
    let mut unknown = Vec::new();
    loop {
        look(&worker, &store, &mut unknown).await;
        domain.sleep(INTERVAL).await;
    }
}

/// One look over all marked rows.
async fn look(worker: &PinnedWorker, store: &Arc<dyn StateStore>, unknown: &mut Vec<Arc<str>>) {
    let mut after = None;
    loop {
        let page = match store.marked_instances(after, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::error!(
                    target: "pinned::worker",
                    error = %ErrorChain(&error),
                    "the state store cannot be searched for instances with work"
                );
                return;
            }
        };
        let Some(last) = page.last() else {
            return;
        };
        after = Some(last.clone());
        let is_last = page.len() < PAGE;
        for instance in &page {
            report_unknown(worker, instance, unknown);
        }
        let resuming = page
            .into_iter()
            .map(|instance| resume(worker.clone(), instance).boxed());
        let resumed = iter(resuming)
            .buffer_unordered(AT_ONCE)
            .for_each(|()| ready(()));
        let paced = worker.domain().sleep(PACE);
        if is_last {
            resumed.await;
            return;
        }
        tokio::join!(resumed, paced);
    }
}

async fn resume(worker: PinnedWorker, instance: InstanceKey) {
    let host = worker
        .each_host()
        .find(|host| *host.namespace == *instance.namespace);
    let Some(host) = host.filter(|host| !host.is_draining()) else {
        return;
    };
    let resumed = host.resume(&instance.id);
    match worker.domain().timeout(PATIENCE, resumed).await {
        Ok(Ok(())) | Err(_) => {}
        // The activation has said so itself.
        Ok(Err(Unavailable::SetupFailed(_))) => {}
        // Full, closing, draining: the next look finds it again.
        Ok(Err(Unavailable::Refused(refusal))) => log_refusal(&instance, &refusal),
    }
}

fn log_refusal(instance: &InstanceKey, refusal: &Refusal) {
    tracing::debug!(
        target: "pinned::worker",
        instance_id = &*instance.id,
        namespace = &*instance.namespace,
        %refusal,
        "an instance with work could not be brought back yet"
    );
}

/// Says once per namespace that nobody serves it.
fn report_unknown(worker: &PinnedWorker, instance: &InstanceKey, unknown: &mut Vec<Arc<str>>) {
    let namespace = &instance.namespace;
    let is_known = worker.namespaces().any(|known| *known == **namespace);
    if is_known || unknown.contains(namespace) {
        return;
    }
    tracing::warn!(
        target: "pinned::worker",
        namespace = &**namespace,
        "the state store has work for a namespace that is not served here"
    );
    unknown.push(Arc::clone(namespace));
}
