//! Rows whose holders are asked to let go (P3.5).

use std::time::Duration;

use super::scene::Scene;
use super::verdict::{Verdict, counts_down, holds, same};
use crate::store::{Expected, Fence, FenceState, FencedRow, PlacementKey};

const LONG: Duration = Duration::from_secs(1_000);

pub(super) async fn checks(scene: &Scene) {
    a_fence_names_whom_to_tell(scene).await;
    a_fence_stands_in_its_row(scene).await;
    a_later_fence_takes_the_place_of_an_earlier_one(scene).await;
    a_passed_fence_leaves_the_id_with_a_holder_that_lives(scene).await;
    a_release_takes_the_fence_along(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    a_fence_begins_and_passes(scene).await;
}

async fn a_fence_names_whom_to_tell(scene: &Scene) {
    let rule = "P3.5 (a fence, and whom to tell)";
    let key = scene.key();
    for fence in [Some(after(Duration::ZERO, LONG)), None] {
        let told = scene.store.fence(&key, fence).await.holds(rule);
        same(rule, "whom to tell when nobody holds it", &told, &None);
    }
    scene.holds_row(&key, None, rule).await;
    let worker = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &worker, rule).await;
    for fence in [Some(after(Duration::ZERO, LONG)), None, None] {
        let told = scene.store.fence(&key, fence).await.holds(rule);
        let expected = Some(FencedRow {
            session: worker.session.clone(),
            epoch,
        });
        same(rule, "whom to tell", &told, &expected);
    }
}

async fn a_fence_stands_in_its_row(scene: &Scene) {
    let rule = "P3.5 (a fence stands in its row)";
    let key = scene.key();
    let (holder, rival) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &holder, rule).await;
    let fence = after(LONG, 2 * LONG);
    scene.store.fence(&key, Some(fence)).await.holds(rule);
    for expected in [Expected::Vacant, super::scene::held_by_dead(&holder, epoch)] {
        let row = scene.claim(&key, &rival, expected, rule).await.held(rule);
        let Some(FenceState::Ahead { starts_in, ends_in }) = row.fence else {
            panic!("{rule}: expected a fence ahead, found {row:?}");
        };
        counts_down(rule, "until it begins", starts_in, LONG);
        counts_down(rule, "until it passes", ends_in, 2 * LONG);
        same(rule, "the epoch", &row.epoch, &epoch);
    }
    let fence = after(Duration::ZERO, LONG);
    scene.store.fence(&key, Some(fence)).await.holds(rule);
    let row = scene
        .take(&key, (&holder, epoch), &rival, rule)
        .await
        .held(rule);
    let Some(FenceState::Standing { ends_in }) = row.fence else {
        panic!("{rule}: expected a fence that stands, found {row:?}");
    };
    counts_down(rule, "until it passes", ends_in, LONG);
    holds(
        rule,
        "its holder lives on",
        scene.lives(&holder, rule).await,
    );
}

async fn a_later_fence_takes_the_place_of_an_earlier_one(scene: &Scene) {
    let rule = "P3.5 (a later order takes the place of an earlier one)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    scene.place(&key, &worker, rule).await;
    for whole in [LONG, LONG / 4, 2 * LONG] {
        let fence = after(whole, whole);
        scene.store.fence(&key, Some(fence)).await.holds(rule);
        match fence_of(scene, &key, rule).await {
            Some(FenceState::Ahead { starts_in, ends_in }) => {
                counts_down(rule, "until it begins", starts_in, whole);
                counts_down(rule, "until it passes", ends_in, whole);
            }
            other => panic!("{rule}: expected a fence ahead, found {other:?}"),
        }
    }
    scene.store.fence(&key, None).await.holds(rule);
    let fence = fence_of(scene, &key, rule).await;
    same(rule, "the fence, once it is revoked", &fence, &None);
}

async fn a_passed_fence_leaves_the_id_with_a_holder_that_lives(scene: &Scene) {
    let rule = "P4.6 (past the fence, nobody takes the id from a holder that lives)";
    let key = scene.key();
    let (holder, rival) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &holder, rule).await;
    let fence = after(Duration::ZERO, Duration::ZERO);
    scene.store.fence(&key, Some(fence)).await.holds(rule);
    let row = scene
        .claim(&key, &rival, Expected::Vacant, rule)
        .await
        .held(rule);
    same(rule, "the fence", &row.fence, &Some(FenceState::Passed));
    let row = scene
        .take(&key, (&holder, epoch), &rival, rule)
        .await
        .held(rule);
    let expected = (holder.session.clone(), epoch);
    same(rule, "the holder", &(row.session, row.epoch), &expected);
    let freed = scene.free(&key, &holder, Some(epoch), rule).await;
    same(rule, "whether it may still let go", &freed, &true);
}

async fn a_release_takes_the_fence_along(scene: &Scene) {
    let rule = "P3.5 (until it is released)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &worker, rule).await;
    let fence = after(Duration::ZERO, LONG);
    scene.store.fence(&key, Some(fence)).await.holds(rule);
    scene.free(&key, &worker, Some(epoch), rule).await;
    scene.place(&key, &worker, rule).await;
    let fence = fence_of(scene, &key, rule).await;
    same(rule, "the fence of the next placement", &fence, &None);
}

async fn a_fence_begins_and_passes(scene: &Scene) {
    let rule = "P3.5 (a fence begins, stands, and passes)";
    let step = Duration::from_secs(1);
    let (key, holder, epoch, ahead, standing, taken) = scene
        .in_time(3 * step, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let holder = scene.worker_of(&key).await;
                let epoch = scene.place(&key, &holder, rule).await;
                let begun = scene.domain.monotonic();
                let fence = after(step, 3 * step);
                scene.store.fence(&key, Some(fence)).await.holds(rule);
                let ahead = fence_of(scene, &key, rule).await;
                let late = scene.domain.monotonic() - begun >= step;
                scene.wait_out(step).await;
                let standing = fence_of(scene, &key, rule).await;
                let rival = scene.worker_of(&key).await;
                let taken = scene.take(&key, (&holder, epoch), &rival, rule).await;
                (key, holder, epoch, (ahead, late), standing, taken)
            })
        })
        .await;
    let (ahead, late) = ahead;
    holds(
        rule,
        &format!("it begins a second later: {ahead:?}"),
        late || matches!(ahead, Some(FenceState::Ahead { .. })),
    );
    holds(
        rule,
        &format!("it stands then: {standing:?}"),
        matches!(standing, Some(FenceState::Standing { ends_in }) if ends_in <= 2 * step),
    );
    taken.held(rule);
    let _alive = scene.keep_alive(&holder);
    scene.wait_out(2 * step).await;
    let fence = fence_of(scene, &key, rule).await;
    same(rule, "the fence", &fence, &Some(FenceState::Passed));
    let rival = scene.worker_of(&key).await;
    scene
        .take(&key, (&holder, epoch), &rival, rule)
        .await
        .held(rule);
}

async fn fence_of(scene: &Scene, key: &PlacementKey, rule: &str) -> Option<FenceState> {
    match scene.row(key, rule).await {
        Some(row) => row.fence,
        None => panic!("{rule}: expected a row of {key:?}"),
    }
}

fn after(starts_in: Duration, ends_in: Duration) -> Fence {
    Fence { starts_in, ends_in }
}
