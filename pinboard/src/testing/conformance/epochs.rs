//! Placement epochs (P4.3).

use super::scene::{Scene, claim};
use super::verdict::{Verdict, holds, same};
use crate::store::{EndMode, Expected, PlacementKey, Reclaimed};

pub(super) async fn checks(scene: &Scene) {
    an_epoch_is_no_lower_than_the_time(scene).await;
    each_new_holder_has_a_higher_epoch(scene).await;
    the_durable_store_may_know_a_higher_one(scene).await;
}

async fn an_epoch_is_no_lower_than_the_time(scene: &Scene) {
    let rule = "P4.3 (no lower than the time in milliseconds)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let before = scene.now_ms();
    let epoch = scene.place(&key, &worker, rule).await;
    // The clocks of a store and of this process are two readings of one, and round as they like.
    holds(
        rule,
        &format!("{epoch} is no lower than {before}"),
        epoch + 2 >= before,
    );
}

async fn each_new_holder_has_a_higher_epoch(scene: &Scene) {
    let rule = "P4.3 (higher than any epoch that the id ever had)";
    let key = scene.key();
    let mut holder = scene.worker_of(&key).await;
    let mut last = scene.place(&key, &holder, rule).await;
    for round in 0..60 {
        let next = scene.worker_of(&key).await;
        let epoch = match round % 3 {
            0 => {
                scene.free(&key, &holder, Some(last), rule).await;
                let claimed = scene.claim(&key, &next, Expected::VacantForAnyone, rule);
                claimed.await.placed(rule).0
            }
            1 => {
                scene.end(&holder, EndMode::Now, rule).await;
                let taken = scene.take(&key, (&holder, last), &next, rule).await;
                taken.placed(rule).0
            }
            _ => {
                scene.free(&key, &holder, None, rule).await;
                let keys = std::slice::from_ref(&key);
                let reclaimed = scene.store.reclaim(&next.session, &[], keys).await;
                match reclaimed.holds(rule)[..] {
                    [Reclaimed::Claimed { epoch }] => epoch,
                    ref other => panic!("{rule}: expected a fresh epoch, found {other:?}"),
                }
            }
        };
        holds(
            rule,
            &format!("{epoch} is higher than {last}"),
            epoch > last,
        );
        (holder, last) = (next, epoch);
    }
    scene.holds_row(&key, Some((&holder, last)), rule).await;
}

async fn the_durable_store_may_know_a_higher_one(scene: &Scene) {
    let rule = "P4.3 (above the durable store's epoch)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    // The last of them is beyond what a 64-bit float tells apart from its neighbours.
    for beyond in [0, 1_000_000, (1 << 53) + 1] {
        let above = scene.now_ms() + beyond;
        let mut asked = claim(&key, &worker, Expected::Vacant);
        asked.above = above;
        let (epoch, _) = scene.store.claim(asked).await.holds(rule).placed(rule);
        holds(rule, &format!("{epoch} is above {above}"), epoch > above);
        scene.holds_row(&key, Some((&worker, epoch)), rule).await;
        let freed = scene.free(&key, &worker, Some(epoch + 1), rule).await;
        same(rule, "whether the next epoch holds it", &freed, &false);
        let freed = scene.free(&key, &worker, Some(epoch), rule).await;
        same(rule, "whether its epoch holds it", &freed, &true);

        let mut last = epoch;
        for _ in 0..3 {
            let epoch = scene.place(&key, &worker, rule).await;
            holds(
                rule,
                &format!("{epoch} is higher than {last}"),
                epoch > last,
            );
            scene.free(&key, &worker, Some(epoch), rule).await;
            last = epoch;
        }
    }
    let other = PlacementKey::single(key.ns.clone(), "green");
    scene.place(&other, &worker, rule).await;
}
