//! What a worker that registers again keeps (P2.5).

use std::slice::from_ref;
use std::time::Duration;

use super::placements::list;
use super::scene::Scene;
use super::verdict::{Verdict, holds, same};
use crate::store::{Claimed, EndMode, Expected, Fence, FenceState, PlacementKey, Reclaimed, Row};

pub(super) async fn checks(scene: &Scene) {
    rows_of_the_previous_session_move(scene).await;
    rows_of_a_dead_previous_session_move(scene).await;
    what_nobody_holds_is_claimed(scene).await;
    what_another_session_holds_is_a_duplicate(scene).await;
    what_a_dead_session_held_is_claimed(scene).await;
    reclaiming_may_be_repeated(scene).await;
    a_fence_moves_along(scene).await;
    answers_come_in_the_order_of_the_keys(scene).await;
}

async fn rows_of_the_previous_session_move(scene: &Scene) {
    let rule = "P2.5 (a row of the previous session moves with its epoch)";
    let key = scene.key();
    let first = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &first, rule).await;
    let (second, _) = scene.again(&first, rule).await;
    let moved = scene
        .store
        .reclaim(&second.session, from_ref(&first.session), from_ref(&key))
        .await
        .holds(rule);
    same(
        rule,
        "the answer",
        &moved,
        &vec![Reclaimed::Moved { epoch }],
    );
    scene.end(&first, EndMode::Now, rule).await;
    scene.holds_row(&key, Some((&second, epoch)), rule).await;

    let freed = scene.free(&key, &first, Some(epoch), rule).await;
    same(rule, "whether the earlier session holds it", &freed, &false);
    let rival = scene.worker_of(&key).await;
    let row = scene
        .claim(&key, &rival, Expected::Vacant, rule)
        .await
        .held(rule);
    let stale = scene.take(&key, (&first, epoch), &rival, rule).await;
    same(rule, "the row", &stale.held(rule), &row);
    let listed = list(scene, &second, "*", &key.ns, rule).await;
    holds(rule, "it is among the new one's", listed.contains(&key.id));
    let freed = scene.free(&key, &second, Some(epoch), rule).await;
    same(rule, "whether the new session holds it", &freed, &true);
}

async fn rows_of_a_dead_previous_session_move(scene: &Scene) {
    let rule = "P2.5 (a row of a previous session that is dead)";
    let key = scene.key();
    let first = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &first, rule).await;
    scene.end(&first, EndMode::Now, rule).await;
    let (second, _) = scene.again(&first, rule).await;
    let moved = scene
        .store
        .reclaim(&second.session, from_ref(&first.session), from_ref(&key))
        .await
        .holds(rule);
    same(
        rule,
        "the answer",
        &moved,
        &vec![Reclaimed::Moved { epoch }],
    );
    scene.holds_row(&key, Some((&second, epoch)), rule).await;
}

async fn what_nobody_holds_is_claimed(scene: &Scene) {
    let rule = "P2.5 (an id without a row is claimed at a fresh epoch)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let before = scene.now_ms();
    let claimed = scene
        .store
        .reclaim(&worker.session, &[], from_ref(&key))
        .await
        .holds(rule);
    let [Reclaimed::Claimed { epoch }] = claimed[..] else {
        panic!("{rule}: expected a fresh epoch, found {claimed:?}");
    };
    holds(rule, "the epoch is fresh", epoch + 2 >= before);
    scene.holds_row(&key, Some((&worker, epoch)), rule).await;
    let listed = list(scene, &worker, "*", &key.ns, rule).await;
    holds(rule, "it is among its ids", listed.contains(&key.id));
}

async fn what_another_session_holds_is_a_duplicate(scene: &Scene) {
    let rule = "P2.5 (a row of another live session is a duplicate)";
    let key = scene.key();
    let (holder, rival) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let first = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &first, rule).await;
    scene.end(&first, EndMode::Now, rule).await;
    let (epoch, _) = scene
        .take(&key, (&first, epoch), &holder, rule)
        .await
        .placed(rule);
    let (second, _) = scene.again(&first, rule).await;
    for (session, previous) in [(&second, from_ref(&first.session)), (&rival, &[])] {
        let reclaimed = scene
            .store
            .reclaim(&session.session, previous, from_ref(&key))
            .await
            .holds(rule);
        same(rule, "the answer", &reclaimed, &vec![Reclaimed::Duplicate]);
    }
    // One that ends later may be alive.
    scene.end(&holder, EndMode::AtExpiry, rule).await;
    let reclaimed = scene
        .store
        .reclaim(&rival.session, &[], from_ref(&key))
        .await
        .holds(rule);
    same(rule, "the answer", &reclaimed, &vec![Reclaimed::Duplicate]);
    scene.holds_row(&key, Some((&holder, epoch)), rule).await;
}

async fn what_a_dead_session_held_is_claimed(scene: &Scene) {
    let rule = "P2.5 (a row of a dead session is claimed at a fresh epoch)";
    let key = scene.key();
    let (dead, worker) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &dead, rule).await;
    scene.end(&dead, EndMode::Now, rule).await;
    let claimed = scene
        .store
        .reclaim(&worker.session, &[], from_ref(&key))
        .await
        .holds(rule);
    let [Reclaimed::Claimed { epoch: fresh }] = claimed[..] else {
        panic!("{rule}: expected a fresh epoch, found {claimed:?}");
    };
    holds(rule, "it is higher", fresh > epoch);
    scene.holds_row(&key, Some((&worker, fresh)), rule).await;
}

async fn reclaiming_may_be_repeated(scene: &Scene) {
    let rule = "P2.5 (a reclaim whose answer was lost is sent again)";
    let (held, free) = (scene.key(), scene.key());
    let first = scene.worker_of(&held).await;
    let epoch = scene.place(&held, &first, rule).await;
    let (second, _) = scene.again(&first, rule).await;
    let keys = [held.clone(), free.clone()];
    let mut answers = Vec::new();
    for _ in 0..2 {
        let reclaimed = scene
            .store
            .reclaim(&second.session, from_ref(&first.session), &keys)
            .await;
        answers.push(reclaimed.holds(rule));
    }
    let [
        Reclaimed::Moved { epoch: moved },
        Reclaimed::Claimed { epoch: fresh },
    ] = answers[0][..]
    else {
        panic!("{rule}: expected one moved and one claimed, found {answers:?}");
    };
    same(rule, "the epoch that it had", &moved, &epoch);
    let again = [
        Reclaimed::Moved { epoch },
        Reclaimed::Moved { epoch: fresh },
    ];
    same(
        rule,
        "the second answer: both are its own now",
        &answers[1],
        &again.to_vec(),
    );
}

async fn a_fence_moves_along(scene: &Scene) {
    let rule = "P3.5 (a fence stands until the id is released)";
    let key = scene.key();
    let first = scene.worker_of(&key).await;
    scene.place(&key, &first, rule).await;
    let fence = Fence {
        starts_in: Duration::ZERO,
        ends_in: Duration::from_secs(1_000),
    };
    scene.store.fence(&key, Some(fence)).await.holds(rule);
    let (second, _) = scene.again(&first, rule).await;
    scene
        .store
        .reclaim(&second.session, from_ref(&first.session), from_ref(&key))
        .await
        .holds(rule);
    let row = scene.row(&key, rule).await;
    let stands = matches!(
        row,
        Some(Row {
            fence: Some(FenceState::Standing { .. }),
            ..
        })
    );
    holds(rule, &format!("the fence has moved too: {row:?}"), stands);
}

async fn answers_come_in_the_order_of_the_keys(scene: &Scene) {
    let rule = "P2.5 (thousands of instances, one answer for each)";
    const KEYS: usize = 2_000;
    let ns = scene.ns();
    let (first, rival) = (
        scene.worker(from_ref(&ns)).await,
        scene.worker(from_ref(&ns)).await,
    );
    let mut keys = Vec::new();
    for n in 0..KEYS {
        let key = PlacementKey::single(ns.clone(), format!("id-{n}"));
        match n % 20 {
            0 => drop(scene.place(&key, &first, rule).await),
            1 => drop(scene.place(&key, &rival, rule).await),
            _ => {}
        }
        keys.push(key);
    }
    let (second, _) = scene.again(&first, rule).await;
    let answers = scene
        .store
        .reclaim(&second.session, from_ref(&first.session), &keys)
        .await
        .holds(rule);
    same(rule, "the number of answers", &answers.len(), &KEYS);
    for (n, answer) in answers.iter().enumerate() {
        let fits = match n % 20 {
            0 => matches!(answer, Reclaimed::Moved { .. }),
            1 => *answer == Reclaimed::Duplicate,
            _ => matches!(answer, Reclaimed::Claimed { .. }),
        };
        holds(rule, &format!("answer {n} fits its key: {answer:?}"), fits);
    }
    let listed = list(scene, &second, "*", &ns, rule).await;
    same(
        rule,
        "how many it holds",
        &listed.len(),
        &(KEYS - KEYS / 20),
    );
    let none = scene.store.reclaim(&second.session, &[], &[]).await;
    same(rule, "the answers to nothing", &none.holds(rule), &vec![]);
    let claimed = scene.claim(&keys[2], &rival, Expected::Vacant, rule).await;
    holds(
        rule,
        "what was reclaimed is held",
        matches!(claimed, Claimed::Held(row) if row.session == second.session),
    );
}
