//! Nothing new is placed on a store that has just started, or has lost what it knew (P4.4).

use std::slice::from_ref;
use std::time::Duration;

use super::changes::Reader;
use super::scene::{Scene, Worker, claim, held_by_dead};
use super::verdict::{Verdict, holds, same};
use crate::store::{Claimed, EndMode, Expected, PlacementKey, Reclaimed};

pub(super) async fn checks(scene: &Scene) {
    a_cold_store_places_nothing_new(scene).await;
    a_quarantine_can_be_extended(scene).await;
    a_wiped_store_is_a_cold_one(scene).await;
    a_store_from_a_copy_is_a_cold_one(scene).await;
}

async fn a_cold_store_places_nothing_new(scene: &Scene) {
    let rule = "P4.4 (a store without a boot mark places nothing new)";
    let whole = scene.options.quarantine;
    let key = scene.key();
    let start = scene.domain.monotonic();
    // Whatever comes first writes the mark.
    let worker = scene.worker_of(&key).await;
    scene.store.prepare().await.holds(rule);
    scene.store.ping().await.holds(rule);

    let refused = scene.claim(&key, &worker, Expected::Vacant, rule).await;
    let left = scene.store.quarantine().await.holds(rule);
    let (held, dead) = (scene.key(), scene.key());
    let reclaimed = reclaim(scene, &worker, &[], &[held.clone(), dead.clone()], rule).await;
    let [
        Reclaimed::Claimed { epoch },
        Reclaimed::Claimed { epoch: of_dead },
    ] = reclaimed[..]
    else {
        panic!("{rule}: ids are reclaimed meanwhile; expected two claims, found {reclaimed:?}");
    };
    let rival = scene.worker_of(&held).await;
    let row = scene.claim(&held, &rival, Expected::Vacant, rule).await;
    let row = row.held(rule);
    same(
        rule,
        "who holds what was reclaimed",
        &(row.session, row.epoch),
        &(worker.session.clone(), epoch),
    );
    let (other, _) = scene.again(&worker, rule).await;
    let keys = from_ref(&held);
    let moved = reclaim(scene, &other, from_ref(&worker), keys, rule).await;
    same(
        rule,
        "moving meanwhile",
        &moved,
        &vec![Reclaimed::Moved { epoch }],
    );
    scene.end(&worker, EndMode::Now, rule).await;
    let expected = held_by_dead(&worker, of_dead);
    let takeover = scene.claim(&dead, &rival, expected, rule).await;
    let freed = scene.free(&held, &other, Some(epoch), rule).await;
    same(rule, "whether it is freed meanwhile", &freed, &true);
    let again = scene.claim(&held, &rival, Expected::VacantForAnyone, rule);
    let again = again.await;
    if scene.domain.monotonic() - start < whole {
        quarantined(rule, &refused, whole);
        quarantined(rule, &takeover, whole);
        quarantined(rule, &again, whole);
        holds(
            rule,
            &format!("what is left of {whole:?} is told: {left:?}"),
            left.is_some_and(|left| left <= whole && left > Duration::ZERO),
        );
    }

    scene.out_of_quarantine().await;
    let waited = scene.domain.monotonic() - start;
    holds(
        rule,
        &format!("it lasts {whole:?}, not {waited:?}"),
        waited >= whole,
    );
    scene.place(&key, &rival, rule).await;
    let taken = scene.take(&dead, (&worker, of_dead), &rival, rule).await;
    holds(rule, "the ids of the dead are free", taken.placed(rule).1);
}

async fn a_quarantine_can_be_extended(scene: &Scene) {
    let rule = "P4.4 (a quarantine is extended)";
    let whole = scene.options.quarantine;
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    let start = scene.domain.monotonic();
    scene.store.extend_quarantine(whole).await.holds(rule);
    let shorter = whole / 4;
    scene.store.extend_quarantine(shorter).await.holds(rule);
    let left = scene.store.quarantine().await.holds(rule);
    let node = scene.node().await;
    let refused = node.claim(claim(&key, &worker, Expected::Vacant)).await;
    if scene.domain.monotonic() - start < whole / 2 {
        holds(
            rule,
            &format!("a shorter time takes nothing from {whole:?}: {left:?}"),
            left.is_some_and(|left| left <= whole && left > shorter),
        );
        quarantined(rule, &refused.holds(rule), whole);
    }
    scene.out_of_quarantine().await;
    let waited = scene.domain.monotonic() - start;
    holds(rule, "it lasts as long as was asked", waited >= whole);
    scene.place(&key, &worker, rule).await;
}

async fn a_wiped_store_is_a_cold_one(scene: &Scene) {
    let rule = "P4.4 (a wiped store is a cold one)";
    let node = scene.node().await;
    let (held, free) = (scene.key(), scene.key());
    let before = scene.worker_of(&held).await;
    let epoch = scene.place(&held, &before, rule).await;
    let old = scene.place(&free, &before, rule).await;
    let mut readers = [Reader::default(), Reader::default()];
    readers[0].read(&*scene.store, rule).await;
    readers[1].read(&*node, rule).await;

    // What the store forgets is made up for by the clock, which goes on.
    scene.wait(Duration::from_millis(10)).await;
    let start = scene.domain.monotonic();
    scene.fleet.wipe().await;
    holds(rule, "no session lives", !scene.lives(&before, rule).await);
    let (after, registered) = scene.again(&before, rule).await;
    same(rule, "the earlier session", &registered.earlier, &None);
    let refused = [
        node.claim(claim(&free, &after, Expected::Vacant))
            .await
            .holds(rule),
        scene.claim(&free, &after, Expected::Vacant, rule).await,
    ];
    scene.holds_row(&held, None, rule).await;
    let keys = from_ref(&held);
    let reclaimed = reclaim(scene, &after, from_ref(&before), keys, rule).await;
    let [Reclaimed::Claimed { epoch: fresh }] = reclaimed[..] else {
        panic!("{rule}: expected a fresh epoch, found {reclaimed:?}");
    };
    holds(
        rule,
        &format!("no epoch is handed out twice: {fresh} after {epoch}"),
        fresh > epoch,
    );
    let whole = scene.options.quarantine;
    if scene.domain.monotonic() - start < whole {
        for refused in &refused {
            quarantined(rule, refused, whole);
        }
    }
    for reader in &mut readers {
        reader.read(&*scene.store, rule).await;
        holds(
            rule,
            "a reader forgets the sessions that are lost, and learns of those that came",
            !reader.sees(&before.session) && reader.sees(&after.session),
        );
    }
    scene.out_of_quarantine().await;
    let (next, _) = node
        .claim(claim(&free, &after, Expected::Vacant))
        .await
        .holds(rule)
        .placed(rule);
    holds(
        rule,
        &format!("no epoch is handed out twice: {next} after {old}"),
        next > old,
    );
}

async fn a_store_from_a_copy_is_a_cold_one(scene: &Scene) {
    let rule = "P4.4 (a store that has lost its latest writes)";
    let node = scene.node().await;
    let [kept, lost, left] = [scene.key(), scene.key(), scene.key()];
    let before = scene.worker_of(&kept).await;
    let epoch = scene.place(&kept, &before, rule).await;
    scene.place(&left, &before, rule).await;
    if !scene.fleet.copy().await {
        return;
    }
    let late = scene.place(&lost, &before, rule).await;
    // A row that the copy still has.
    let freed = scene.free(&kept, &before, Some(epoch), rule).await;
    same(rule, "whether it was there", &freed, &true);
    let claimed = scene.claim(&kept, &before, Expected::VacantForAnyone, rule);
    let (epoch, _) = claimed.await.placed(rule);
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;

    scene.wait(Duration::from_millis(10)).await;
    scene.fleet.restart_from_copy().await;
    let start = scene.domain.monotonic();
    // Whoever has not heard of the restart still takes the holder for alive, and must not send it a request under an epoch
    // that may be long handed back.
    for store in [&scene.store, &node] {
        let row = scene.row(&left, rule).await;
        let claimed = store.claim(claim(&left, &before, Expected::Vacant)).await;
        let held = claimed.holds(rule).held(rule);
        for row in [row, Some(held)] {
            let current = row.map(|row| row.current);
            same(
                rule,
                "whether a row of the copy is current",
                &current,
                &Some(false),
            );
        }
    }
    holds(rule, "no session lives", !scene.lives(&before, rule).await);
    let (after, registered) = scene.again(&before, rule).await;
    same(rule, "the earlier session", &registered.earlier, &None);
    let rival = scene.worker_of(&kept).await;
    let mut refused = Vec::new();
    for (key, store) in [(&lost, &scene.store), (&left, &node)] {
        refused.push(resolve(&**store, key, &rival, rule).await);
    }
    let keys = [kept.clone(), lost.clone()];
    let reclaimed = reclaim(scene, &after, from_ref(&before), &keys, rule).await;
    let [kept_at, lost_at] = [0, 1].map(|n| match reclaimed[n] {
        Reclaimed::Claimed { epoch } | Reclaimed::Moved { epoch } => epoch,
        Reclaimed::Duplicate => panic!("{rule}: nobody else holds key {n}"),
    });
    holds(
        rule,
        &format!("no epoch is handed out twice: {lost_at} after {late}"),
        lost_at > late,
    );
    // The worker has been told of this epoch, and refuses what is below it: a row from the copy must not bring an
    // earlier one back.
    holds(
        rule,
        &format!("no id falls back to an earlier epoch: {kept_at} after {epoch}"),
        kept_at >= epoch,
    );
    let current = scene.row(&kept, rule).await.map(|row| row.current);
    same(
        rule,
        "whether a row that was taken back is current",
        &current,
        &Some(true),
    );
    let whole = scene.options.quarantine;
    if scene.domain.monotonic() - start < whole {
        for refused in &refused {
            quarantined(rule, refused, whole);
        }
    }
    reader.read(&*scene.store, rule).await;
    holds(
        rule,
        "a reader forgets the sessions that are lost, and learns of those that came",
        !reader.sees(&before.session) && reader.sees(&after.session),
    );
    scene.out_of_quarantine().await;
    let next = resolve(&*node, &left, &rival, rule).await.placed(rule).0;
    scene.holds_row(&left, Some((&rival, next)), rule).await;
    scene.holds_row(&kept, Some((&after, kept_at)), rule).await;
    scene.free(&kept, &after, None, rule).await;
    let claimed = scene.claim(&kept, &rival, Expected::VacantForAnyone, rule);
    let next = claimed.await.placed(rule).0;
    holds(
        rule,
        &format!("no epoch is handed out twice: {next} after {epoch}"),
        next > epoch,
    );
}

/// Places an id as a node does that believes its holder dead.
async fn resolve(
    store: &dyn crate::store::RegistryStore,
    key: &PlacementKey,
    candidate: &Worker,
    rule: &str,
) -> Claimed {
    let asked = claim(key, candidate, Expected::Vacant);
    match store.claim(asked).await.holds(rule) {
        Claimed::Held(row) => {
            let expected = Expected::HeldByDead {
                session: row.session,
                epoch: row.epoch,
            };
            store
                .claim(claim(key, candidate, expected))
                .await
                .holds(rule)
        }
        other => other,
    }
}

async fn reclaim(
    scene: &Scene,
    worker: &Worker,
    previous: &[Worker],
    keys: &[PlacementKey],
    rule: &str,
) -> Vec<Reclaimed> {
    let previous: Vec<_> = previous.iter().map(|p| p.session.clone()).collect();
    let reclaimed = scene.store.reclaim(&worker.session, &previous, keys).await;
    let reclaimed = reclaimed.holds(rule);
    same(rule, "how many answers", &reclaimed.len(), &keys.len());
    reclaimed
}

#[track_caller]
fn quarantined(rule: &str, claimed: &Claimed, whole: Duration) {
    assert!(
        matches!(claimed, Claimed::Quarantined { ends_in } if *ends_in <= whole),
        "{rule}: expected at most {whole:?} of quarantine, found {claimed:?}"
    );
}
