//! Claims, rows and lists of rows (P4.2).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::scene::{Scene, Worker, claim, held_by_dead};
use super::verdict::{Verdict, holds, same};
use crate::store::{Claimed, EndMode, Expected, PlacementKey, SessionId};

pub(super) async fn checks(scene: &Scene) {
    the_first_claim_wins(scene).await;
    a_live_holder_keeps_its_id(scene).await;
    only_the_row_that_was_read_is_taken(scene).await;
    a_row_that_has_gone_meanwhile_is_no_obstacle(scene).await;
    nothing_is_placed_on_a_dead_session(scene).await;
    keys_do_not_run_into_one_another(scene).await;
    the_ids_of_a_holder_are_listed(scene).await;
    rows_are_counted(scene).await;
}

async fn the_first_claim_wins(scene: &Scene) {
    let rule = "P4.2 (the first claim wins)";
    let key = scene.key();
    let (winner, loser) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    scene.holds_row(&key, None, rule).await;
    let epoch = scene.place(&key, &winner, rule).await;
    scene.holds_row(&key, Some((&winner, epoch)), rule).await;
    // On another node, and for the holder itself, too.
    let node = scene.node().await;
    for candidate in [&loser, &winner] {
        for expected in [Expected::Vacant, Expected::VacantForAnyone] {
            let claimed = node.claim(claim(&key, candidate, expected)).await;
            let row = claimed.holds(rule).held(rule);
            same(
                rule,
                "who holds it",
                &(row.session, row.epoch, row.fence),
                &(winner.session.clone(), epoch, None),
            );
        }
    }
}

async fn a_live_holder_keeps_its_id(scene: &Scene) {
    let rule = "P4.2 (a live holder keeps its id)";
    let key = scene.key();
    let (holder, rival) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &holder, rule).await;
    let row = scene
        .take(&key, (&holder, epoch), &rival, rule)
        .await
        .held(rule);
    same(
        rule,
        "the row",
        &(row.session, row.epoch),
        &(holder.session.clone(), epoch),
    );
    scene.holds_row(&key, Some((&holder, epoch)), rule).await;
}

async fn only_the_row_that_was_read_is_taken(scene: &Scene) {
    let rule = "P4.2 (compare-and-set on the row that was read)";
    let key = scene.key();
    let (first, second) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let (third, other) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let epoch = scene.place(&key, &first, rule).await;
    scene.end(&first, EndMode::Now, rule).await;

    for expected in [
        held_by_dead(&first, epoch - 1),
        held_by_dead(&first, epoch + 1),
        held_by_dead(&other, epoch),
    ] {
        let row = scene.claim(&key, &second, expected, rule).await.held(rule);
        same(
            rule,
            "the row that is not what was expected",
            &(row.session, row.epoch),
            &(first.session.clone(), epoch),
        );
    }
    let (next, replaced) = scene
        .take(&key, (&first, epoch), &second, rule)
        .await
        .placed(rule);
    holds(rule, "a dead holder loses it", replaced && next > epoch);
    let row = scene
        .take(&key, (&first, epoch), &third, rule)
        .await
        .held(rule);
    same(
        rule,
        "the row, for whoever comes too late",
        &(row.session, row.epoch),
        &(second.session.clone(), next),
    );
}

/// It was swept, or released: there is nobody whom a placement could take anything from.
async fn a_row_that_has_gone_meanwhile_is_no_obstacle(scene: &Scene) {
    let rule = "P4.2 (a row that has gone since it was read)";
    let key = scene.key();
    let (gone, next) = (scene.worker_of(&key).await, scene.worker_of(&key).await);
    let claimed = scene.claim(&key, &next, held_by_dead(&gone, 1), rule).await;
    let (epoch, replaced) = claimed.placed(rule);
    same(rule, "whether a holder lost it", &replaced, &false);
    scene.holds_row(&key, Some((&next, epoch)), rule).await;
}

async fn nothing_is_placed_on_a_dead_session(scene: &Scene) {
    let rule = "P4.2 (nothing is placed on a dead session)";
    let key = scene.key();
    let mut stranger = scene.worker_of(&key).await;
    stranger.session = SessionId::new(scene.domain.token_hex(16));
    let dead = scene.worker_of(&key).await;
    scene.end(&dead, EndMode::Now, rule).await;
    for candidate in [&stranger, &dead] {
        for expected in [Expected::Vacant, Expected::VacantForAnyone] {
            let claimed = scene.claim(&key, candidate, expected, rule).await;
            same(rule, "the claim", &claimed, &Claimed::CandidateGone);
        }
    }
    scene.holds_row(&key, None, rule).await;

    let holder = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &holder, rule).await;
    scene.end(&holder, EndMode::Now, rule).await;
    let claimed = scene.take(&key, (&holder, epoch), &dead, rule).await;
    same(
        rule,
        "taking over for a dead session",
        &claimed,
        &Claimed::CandidateGone,
    );
    // Whatever a claim for the dead answers here, the row stays.
    scene.claim(&key, &dead, Expected::Vacant, rule).await;
    scene.holds_row(&key, Some((&holder, epoch)), rule).await;
}

async fn keys_do_not_run_into_one_another(scene: &Scene) {
    let rule = "P4.2 (every (env, ns, id) is a row of its own)";
    let number = scene.number();
    let long = "x".repeat(256);
    let mut keys = BTreeSet::new();
    for env in ["*", "p", "p:", "p:/q", "{0}", "}{", "{fleet}", "ü n", "p/q"] {
        for ns in ["/q", "/q:r", "/q,r", "/{0}", "/q*"] {
            for id in ["a", "A", "a.b", "a~b", "-", "_", long.as_str()] {
                keys.insert(PlacementKey::new(env, format!("{ns}{number}"), id));
            }
        }
    }
    let worker = scene.worker(&[scene.ns()]).await;
    let mut epochs = Vec::new();
    for key in &keys {
        epochs.push(scene.place(key, &worker, rule).await);
    }
    for (key, epoch) in keys.iter().zip(&epochs) {
        scene.holds_row(key, Some((&worker, *epoch)), rule).await;
    }
    for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 == 0) {
        let freed = scene.free(key, &worker, Some(epochs[n]), rule).await;
        same(rule, "whether it was there", &freed, &true);
    }
    for (n, key) in keys.iter().enumerate() {
        let expected = (n % 3 != 0).then_some((&worker, epochs[n]));
        scene.holds_row(key, expected, rule).await;
    }
}

async fn the_ids_of_a_holder_are_listed(scene: &Scene) {
    let rule = "P3.5 (every id in (env, namespace))";
    let ns = scene.ns();
    let (worker, other) = (
        scene.worker(std::slice::from_ref(&ns)).await,
        scene.worker(std::slice::from_ref(&ns)).await,
    );
    let mut expected = BTreeSet::new();
    for n in 0..300 {
        let key = PlacementKey::single(ns.clone(), format!("id-{n:03}"));
        scene.place(&key, &worker, rule).await;
        expected.insert(key.id);
    }
    let apart = [
        PlacementKey::single(scene.ns(), "of-another-namespace"),
        PlacementKey::new("elsewhere", ns.clone(), "of-another-env"),
    ];
    for key in &apart {
        scene.place(key, &worker, rule).await;
    }
    let theirs = PlacementKey::single(ns.clone(), "of-another-worker");
    scene.place(&theirs, &other, rule).await;
    let freed = PlacementKey::single(ns.clone(), "id-007");
    scene.free(&freed, &worker, None, rule).await;
    expected.remove("id-007");

    let listed = list(scene, &worker, PlacementKey::SINGLE, &ns, rule).await;
    same(rule, "its ids", &listed, &expected);
    let listed = list(scene, &worker, "elsewhere", &ns, rule).await;
    let expected = BTreeSet::from([Arc::clone(&apart[1].id)]);
    same(rule, "its ids in another env", &listed, &expected);
    let listed = list(scene, &other, PlacementKey::SINGLE, &apart[0].ns, rule).await;
    same(rule, "the ids of who has none", &listed, &BTreeSet::new());
}

/// All ids of a holder.
pub(super) async fn list(
    scene: &Scene,
    holder: &Worker,
    env: &str,
    ns: &str,
    rule: &str,
) -> BTreeSet<Arc<str>> {
    let (mut ids, mut cursor) = (BTreeSet::new(), 0);
    for _ in 0..10_000 {
        let page = scene.store.held_by(&holder.session, env, ns, cursor).await;
        let (some, next) = page.holds(rule);
        ids.extend(some);
        if next == 0 {
            return ids;
        }
        cursor = next;
    }
    panic!("{rule}: the list has no end");
}

async fn rows_are_counted(scene: &Scene) {
    let rule = "P3.3 (instances per namespace)";
    let ns = scene.ns();
    let worker = scene.worker(std::slice::from_ref(&ns)).await;
    for n in 0..20 {
        let key = PlacementKey::single(ns.clone(), format!("id-{n}"));
        scene.place(&key, &worker, rule).await;
    }
    let elsewhere = PlacementKey::new("elsewhere", ns.clone(), "one");
    scene.place(&elsewhere, &worker, rule).await;
    same(rule, "the rows", &count(scene, "*", &ns, rule).await, &20);
    let other = count(scene, "elsewhere", &ns, rule).await;
    same(rule, "the rows of another env", &other, &1);

    let (next, _) = scene.again(&worker, rule).await;
    let key = PlacementKey::single(ns.clone(), "id-0");
    let moved = scene.store.reclaim(
        &next.session,
        std::slice::from_ref(&worker.session),
        std::slice::from_ref(&key),
    );
    moved.await.holds(rule);
    let after = count(scene, "*", &ns, rule).await;
    same(rule, "the rows, after one has moved", &after, &20);
}

/// How many rows a namespace has.
pub(super) async fn count(scene: &Scene, env: &str, ns: &str, rule: &str) -> u64 {
    let counts = scene.store.row_counts().await.holds(rule);
    let mut of_ns = counts
        .iter()
        .filter(|(of_env, of_ns, _)| &**of_env == env && &**of_ns == ns);
    let rows = of_ns.next().map_or(0, |(_, _, rows)| *rows);
    holds(rule, "a namespace is counted once", of_ns.next().is_none());
    rows
}
