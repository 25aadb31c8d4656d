//! Rows of dead sessions go away (P3.3).

use super::placements::count;
use super::scene::Scene;
use super::verdict::{Verdict, holds, same};
use crate::store::{EndMode, Expected, PlacementKey};

pub(super) async fn checks(scene: &Scene) {
    only_rows_of_the_dead_are_swept(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    let rule = "P3.3 (rows of sessions that have expired are swept)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    scene.place(&key, &worker, rule).await;
    scene.wait_out(scene.options.lease_ttl).await;
    sweep(scene, rule).await;
    scene.holds_row(&key, None, rule).await;
    same(
        rule,
        "the rows",
        &count(scene, "*", &key.ns, rule).await,
        &0,
    );
}

async fn only_rows_of_the_dead_are_swept(scene: &Scene) {
    const ROWS: usize = 600;
    let rule = "P3.3 (rows of dead sessions are swept)";
    let ns = scene.ns();
    let namespaces = std::slice::from_ref(&ns);
    let dead = scene.worker(namespaces).await;
    let (alive, ending) = (
        scene.worker(namespaces).await,
        scene.worker(namespaces).await,
    );
    let key = |n: usize| PlacementKey::single(ns.clone(), format!("id-{n}"));
    let mut epochs = Vec::new();
    for n in 0..ROWS {
        let worker = [&dead, &alive, &ending][n % 3];
        epochs.push(scene.place(&key(n), worker, rule).await);
    }
    scene.end(&ending, EndMode::AtExpiry, rule).await;
    sweep(scene, rule).await;
    let rows = count(scene, "*", &ns, rule).await;
    same(rule, "the rows while all may live", &rows, &(ROWS as u64));

    scene.end(&dead, EndMode::Now, rule).await;
    sweep(scene, rule).await;
    let rows = count(scene, "*", &ns, rule).await;
    same(
        rule,
        "the rows after the sweep",
        &rows,
        &(ROWS as u64 / 3 * 2),
    );
    for n in 0..ROWS {
        let holder = [None, Some(&alive), Some(&ending)][n % 3];
        let expected = holder.map(|holder| (holder, epochs[n]));
        scene.holds_row(&key(n), expected, rule).await;
    }
    let claimed = scene.claim(&key(0), &alive, Expected::Vacant, rule).await;
    let (next, replaced) = claimed.placed(rule);
    holds(
        rule,
        "what was swept is placed anew, at a higher epoch",
        next > epochs[0] && !replaced,
    );
}

/// Sweeps until nothing is left to sweep.
pub(super) async fn sweep(scene: &Scene, rule: &str) {
    for _ in 0..1_000 {
        if !scene.store.sweep().await.holds(rule) {
            return;
        }
    }
    panic!("{rule}: the sweep has no end");
}
