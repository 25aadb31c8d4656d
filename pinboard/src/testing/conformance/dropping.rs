//! Operations whose futures are dropped leave nothing half done.

use super::scene::{Scene, claim};
use super::verdict::{Verdict, holds};
use crate::store::{Claimed, EndMode, Expected};

pub(super) async fn checks(scene: &Scene) {
    let rule = "P4.2 (a claim whose future was dropped has happened, or has not)";
    let ns = scene.ns();
    let (worker, rival) = (
        scene.worker(std::slice::from_ref(&ns)).await,
        scene.worker(std::slice::from_ref(&ns)).await,
    );
    for n in 0..50 {
        let key = crate::store::PlacementKey::single(ns.clone(), format!("id-{n}"));
        {
            let mut dropped = scene.store.claim(claim(&key, &worker, Expected::Vacant));
            let _ = futures_util::poll!(&mut dropped);
        }
        let holder = match scene.claim(&key, &rival, Expected::Vacant, rule).await {
            Claimed::Placed { .. } => &rival,
            Claimed::Held(row) => {
                holds(
                    rule,
                    "its candidate holds it",
                    row.session == worker.session,
                );
                &worker
            }
            other => panic!("{rule}: expected a placement or a row, found {other:?}"),
        };
        // It may still be on its way; then it comes too late.
        let row = scene.row(&key, rule).await.map(|row| row.session);
        holds(
            rule,
            "one of them holds it",
            row == Some(holder.session.clone()),
        );
        {
            let mut dropped = scene.store.end_session(&worker.session, EndMode::Now);
            if n == 49 {
                let _ = futures_util::poll!(&mut dropped);
            }
        }
    }
    // Whether it has ended or not: it does one of the two for good.
    let lives = scene.lives(&worker, rule).await;
    for _ in 0..3 {
        let still = scene.lives(&worker, rule).await;
        holds(rule, "the dead stay dead", lives || !still);
    }
    scene.store.ping().await.holds(rule);
}
