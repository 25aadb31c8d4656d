//! Placements that are handed back (P2.8), and those that are remembered for a moment.

use std::time::Duration;

use super::scene::{Scene, Worker, release};
use super::verdict::{Verdict, holds, same};
use crate::store::{Claimed, EndMode, Expected, PlacementKey};

/// A release that comes within this of its placement is remembered.
const SOON: Duration = Duration::from_secs(1);
/// For so long.
const REMEMBERED: Duration = Duration::from_secs(5);

pub(super) async fn checks(scene: &Scene) {
    only_the_holder_lets_go(scene).await;
    several_rows_go_at_once(scene).await;
    a_release_that_comes_soon_is_remembered(scene).await;
    a_preference_ends_with_its_session(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    tokio::join!(
        a_remembered_release_is_forgotten(scene),
        a_release_that_comes_late_is_not_remembered(scene),
    );
}

async fn only_the_holder_lets_go(scene: &Scene) {
    let rule = "P2.8 (only a row that names this session, and this epoch)";
    let key = scene.key();
    let (holder, other) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &holder, rule).await;
    for (session, epoch) in [
        (&other, None),
        (&other, Some(epoch)),
        (&holder, Some(epoch - 1)),
        (&holder, Some(epoch + 1)),
    ] {
        let freed = scene.free(&key, session, epoch, rule).await;
        same(rule, "whether it was freed", &freed, &false);
    }
    scene.holds_row(&key, Some((&holder, epoch)), rule).await;
    let freed = scene.free(&key, &holder, Some(epoch), rule).await;
    same(rule, "whether it was freed", &freed, &true);
    scene.holds_row(&key, None, rule).await;
    let freed = scene.free(&key, &holder, None, rule).await;
    same(rule, "whether it was freed twice", &freed, &false);

    let epoch = scene.place(&key, &holder, rule).await;
    holds(
        rule,
        "any epoch will do",
        scene.free(&key, &holder, None, rule).await,
    );
    let (next, _) = scene
        .claim(&key, &other, Expected::VacantForAnyone, rule)
        .await
        .placed(rule);
    holds(rule, "the epochs go on", next > epoch);
}

async fn several_rows_go_at_once(scene: &Scene) {
    let rule = "P2.8 (a list of releases)";
    let keys: Vec<_> = (0..5).map(|_| scene.key()).collect();
    let (holder, other) = (
        scene.worker_of(&keys[0]).await,
        scene.worker_of(&keys[0]).await,
    );
    let mut releases = Vec::new();
    for key in &keys[..3] {
        let epoch = scene.place(key, &holder, rule).await;
        releases.push(release(key, &holder, Some(epoch)));
    }
    scene.place(&keys[3], &other, rule).await;
    releases.push(release(&keys[3], &holder, None));
    releases.push(release(&keys[4], &holder, None));
    releases.push(release(&keys[0], &holder, None));
    let freed = scene.store.release(&releases).await.holds(rule);
    same(rule, "how many were freed", &freed, &3);
    let freed = scene.store.release(&[]).await.holds(rule);
    same(rule, "how many of none were freed", &freed, &0);
    for key in &keys[..3] {
        scene.holds_row(key, None, rule).await;
    }
}

async fn a_release_that_comes_soon_is_remembered(scene: &Scene) {
    let rule = "P2.8 (a release within a second of the placement)";
    let (first, second, asked, own, anyone) = scene
        .in_time(SOON, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let (first, second) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
                let epoch = scene.place(&key, &first, rule).await;
                scene.free(&key, &first, Some(epoch), rule).await;
                scene.holds_row(&key, None, rule).await;
                let asked = scene.claim(&key, &second, Expected::Vacant, rule).await;
                let own = scene.place(&key, &first, rule).await;
                holds(rule, "the epochs go on", own > epoch);
                scene.free(&key, &first, Some(own), rule).await;
                let anyone = scene.claim(&key, &second, Expected::VacantForAnyone, rule);
                let (anyone, replaced) = anyone.await.placed(rule);
                same(rule, "whether a holder lost it", &replaced, &false);
                scene.holds_row(&key, Some((&second, anyone)), rule).await;
                (first, second, asked, own, anyone)
            })
        })
        .await;
    let preferred = Claimed::Preferred(first.session.clone());
    same(rule, "the claim for another", &asked, &preferred);
    holds(rule, "the epochs go on", anyone > own);
    drop(second);
}

async fn a_preference_ends_with_its_session(scene: &Scene) {
    let rule = "P2.8 (a release within a second, of a session that has ended)";
    let key = scene.key();
    let (first, second) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    scene.place(&key, &first, rule).await;
    scene.free(&key, &first, None, rule).await;
    scene.end(&first, EndMode::Now, rule).await;
    // Who decides that the preference is no use, the store or the node, is open.
    if let Claimed::Preferred(session) = scene.claim(&key, &second, Expected::Vacant, rule).await {
        same(rule, "whom it prefers", &session, &first.session);
        let claimed = scene.claim(&key, &second, Expected::VacantForAnyone, rule);
        claimed.await.placed(rule);
    }
    let row = scene.row(&key, rule).await.map(|row| row.session);
    same(rule, "the holder", &row, &Some(second.session));
}

async fn a_remembered_release_is_forgotten(scene: &Scene) {
    let rule = "P2.8 (a release is remembered for five seconds)";
    let (key, first, second, released, asked) = scene
        .in_time(REMEMBERED, rule, || {
            Box::pin(async move {
                let (key, first) = released_soon(scene, rule).await;
                let released = scene.domain.monotonic();
                let second = scene.worker_of(&key).await;
                let first = (scene.keep_alive(&first), first);
                let second = (scene.keep_alive(&second), second);
                scene.wait(scene.just_before(REMEMBERED)).await;
                let asked = scene.claim(&key, &second.1, Expected::Vacant, rule).await;
                (key, first, second, released, asked)
            })
        })
        .await;
    let preferred = Claimed::Preferred(first.1.session.clone());
    same(rule, "the claim for another, before", &asked, &preferred);
    let waited = scene.domain.monotonic() - released;
    scene.wait_out(REMEMBERED.saturating_sub(waited)).await;
    scene.place(&key, &second.1, rule).await;
}

/// An id whose release surely came soon.
async fn released_soon(scene: &Scene, rule: &'static str) -> (PlacementKey, Worker) {
    scene
        .in_time(SOON, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let worker = scene.worker_of(&key).await;
                scene.place(&key, &worker, rule).await;
                scene.free(&key, &worker, None, rule).await;
                (key, worker)
            })
        })
        .await
}

async fn a_release_that_comes_late_is_not_remembered(scene: &Scene) {
    let rule = "P2.8 (a release more than a second after the placement)";
    let key = scene.key();
    let (first, second) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let _alive = (scene.keep_alive(&first), scene.keep_alive(&second));
    scene.place(&key, &first, rule).await;
    scene.wait_out(SOON + Duration::from_millis(1)).await;
    scene.free(&key, &first, None, rule).await;
    scene.place(&key, &second, rule).await;
}
