//! A node is told what to forget (P5.7).

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::scene::{Scene, claim, held_by_dead, release};
use super::sweep::sweep;
use super::verdict::Verdict;
use crate::store::{EndMode, Expected, Fence, Invalidation, PlacementKey, RegistryStore};

const RULE: &str = "P5.7 (invalidation from the store)";

/// A node that listens.
struct Listener {
    node: Arc<dyn RegistryStore>,
    told: mpsc::Receiver<Invalidation>,
}

pub(super) async fn checks(scene: &Scene) {
    let node = scene.node().await;
    let Some(told) = node.invalidations() else {
        // The store cannot tell, and says so.
        return;
    };
    let mut listener = Listener { node, told };
    changes_of_others_are_told(scene, &mut listener).await;
    changes_through_the_same_handle_are_told(scene, &mut listener).await;
    what_is_read_again_is_told_again(scene, &mut listener).await;
    none_is_lost_when_there_are_too_many(scene, &mut listener).await;
    who_does_not_listen_holds_up_nobody(scene, listener).await;
}

/// A store that has lost everything says so to those who listen.
pub(super) async fn losses(scene: &Scene) {
    let node = scene.node().await;
    let Some(told) = node.invalidations() else {
        return;
    };
    let mut listener = Listener { node, told };
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    scene.place(&key, &worker, RULE).await;
    listener.read(&key).await;
    scene.fleet.wipe().await;
    listener.hears(scene, &key, "everything is lost").await;
    scene.out_of_quarantine().await;
}

impl Listener {
    async fn read(&self, key: &PlacementKey) {
        let row = self.node.row(key).await.holds(RULE);
        assert!(row.is_some(), "{RULE}: expected a row of {key:?}");
    }

    /// Waits to be told of `key`.
    async fn hears(&mut self, scene: &Scene, key: &PlacementKey, what: &str) {
        self.hears_all(scene, BTreeSet::from([key.clone()]), what)
            .await;
    }

    async fn hears_all(&mut self, scene: &Scene, mut keys: BTreeSet<PlacementKey>, what: &str) {
        let limit = Duration::from_secs(5);
        while !keys.is_empty() {
            match scene.domain.timeout(limit, self.told.recv()).await {
                Ok(Some(Invalidation::Row(key))) => drop(keys.remove(&key)),
                Ok(Some(Invalidation::Everything)) => return,
                Ok(None) => panic!("{RULE}: {what}: the invalidations have ended"),
                Err(_) => panic!(
                    "{RULE}: {what}: expected to be told of {} rows more, such as {:?}",
                    keys.len(),
                    keys.first()
                ),
            }
        }
    }
}

async fn changes_of_others_are_told(scene: &Scene, listener: &mut Listener) {
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let asked = claim(&key, &worker, Expected::Vacant);
    let claimed = listener.node.claim(asked).await.holds(RULE);
    let (epoch, _) = claimed.placed(RULE);
    listener.read(&key).await;
    scene.free(&key, &worker, Some(epoch), RULE).await;
    listener.hears(scene, &key, "a release").await;

    let epoch = scene.place(&key, &worker, RULE).await;
    listener.read(&key).await;
    let fence = Fence {
        starts_in: Duration::ZERO,
        ends_in: Duration::from_secs(1_000),
    };
    scene.store.fence(&key, Some(fence)).await.holds(RULE);
    listener.hears(scene, &key, "a fence").await;
    listener.read(&key).await;
    scene.store.fence(&key, None).await.holds(RULE);
    listener.hears(scene, &key, "a fence that is lifted").await;

    let (next, _) = scene.again(&worker, RULE).await;
    listener.read(&key).await;
    let moved = scene
        .store
        .reclaim(&next.session, from_ref(&worker.session), from_ref(&key));
    moved.await.holds(RULE);
    listener.hears(scene, &key, "a row that moved").await;

    // Held is what a claim has read, too.
    let rival = scene.worker_of(&key).await;
    let asked = claim(&key, &rival, Expected::Vacant);
    listener.node.claim(asked).await.holds(RULE).held(RULE);
    scene.end(&next, EndMode::Now, RULE).await;
    let taken = scene.take(&key, (&next, epoch), &rival, RULE).await;
    taken.placed(RULE);
    listener.hears(scene, &key, "a row that was taken").await;

    listener.read(&key).await;
    scene.end(&rival, EndMode::Now, RULE).await;
    sweep(scene, RULE).await;
    listener.hears(scene, &key, "a row that was swept").await;
}

/// One node serves workers and operators as well as requests.
async fn changes_through_the_same_handle_are_told(scene: &Scene, listener: &mut Listener) {
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &worker, RULE).await;
    listener.read(&key).await;
    let fence = Fence {
        starts_in: Duration::ZERO,
        ends_in: Duration::ZERO,
    };
    let node = Arc::clone(&listener.node);
    node.fence(&key, Some(fence)).await.holds(RULE);
    listener.hears(scene, &key, "its own fence").await;

    scene.end(&worker, EndMode::Now, RULE).await;
    let rival = scene.worker_of(&key).await;
    listener.read(&key).await;
    let asked = claim(&key, &rival, held_by_dead(&worker, epoch));
    let (epoch, _) = node.claim(asked).await.holds(RULE).placed(RULE);
    listener.read(&key).await;
    let release = release(&key, &rival, Some(epoch));
    node.release(&[release]).await.holds(RULE);
    listener.hears(scene, &key, "its own release").await;
}

async fn what_is_read_again_is_told_again(scene: &Scene, listener: &mut Listener) {
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    for _ in 0..5 {
        let epoch = scene.place(&key, &worker, RULE).await;
        listener.read(&key).await;
        listener.read(&key).await;
        scene.free(&key, &worker, Some(epoch), RULE).await;
        listener.hears(scene, &key, "each release").await;
    }
}

async fn none_is_lost_when_there_are_too_many(scene: &Scene, listener: &mut Listener) {
    const ROWS: usize = 5_000;
    let ns = scene.ns();
    let worker = scene.worker(from_ref(&ns)).await;
    let key = |n| PlacementKey::single(ns.clone(), format!("id-{n}"));
    let keys: Vec<_> = (0..ROWS).map(key).collect();
    for _ in 0..2 {
        let claimed = scene.store.reclaim(&worker.session, &[], &keys).await;
        claimed.holds(RULE);
        for some in keys.chunks(64) {
            futures_util::future::join_all(some.iter().map(|key| listener.read(key))).await;
        }
        let releases: Vec<_> = keys.iter().map(|key| release(key, &worker, None)).collect();
        scene.store.release(&releases).await.holds(RULE);
        let keys = keys.iter().cloned().collect();
        listener.hears_all(scene, keys, "many changes").await;
        // After all of that, as before.
        let one = scene.key();
        scene.place(&one, &worker, RULE).await;
        listener.read(&one).await;
        scene.free(&one, &worker, None, RULE).await;
        listener.hears(scene, &one, "a change after many").await;
    }
}

async fn who_does_not_listen_holds_up_nobody(scene: &Scene, listener: Listener) {
    let Listener { node, told } = listener;
    drop(told);
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    for _ in 0..3 {
        let asked = claim(&key, &worker, Expected::Vacant);
        node.claim(asked).await.holds(RULE).placed(RULE);
        scene.free(&key, &worker, None, RULE).await;
    }
}
