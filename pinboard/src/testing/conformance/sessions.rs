//! Beginning, renewing and ending sessions (P2.4, P2.6, P2.9).

use super::scene::Scene;
use super::verdict::{Verdict, holds, same};
use crate::store::{
    Claimed, EndMode, Expected, HeartbeatOutcome, MessageBody, Registered, SessionId,
};

pub(super) async fn checks(scene: &Scene) {
    a_session_lives_once_it_is_registered(scene).await;
    a_session_that_never_was_is_unknown(scene).await;
    registering_again_retires_the_earlier_session(scene).await;
    registering_may_be_repeated(scene).await;
    what_has_ended_is_no_earlier_session(scene).await;
    a_session_that_ends_now_frees_its_rows(scene).await;
    a_session_that_ends_later_keeps_its_rows(scene).await;
    the_client_of_a_session_is_known(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    tokio::join!(
        a_session_dies_a_lease_after_its_last_heartbeat(scene),
        a_session_lives_on_by_its_heartbeats(scene),
        a_retired_session_dies_with_its_lease(scene),
        an_ending_session_dies_with_its_lease(scene),
    );
}

async fn a_session_lives_once_it_is_registered(scene: &Scene) {
    let rule = "P2.1 (a session lives once it is registered)";
    let record = scene.record(&[scene.ns()]);
    let (worker, registered) = scene.begin(&record, rule).await;
    let nothing_before = Registered {
        earlier: None,
        drain: None,
    };
    same(rule, "what was before", &registered, &nothing_before);
    let renewed = HeartbeatOutcome::Renewed {
        drain: None,
        messages: Vec::new(),
    };
    let beat = scene.beat(&worker, rule).await;
    same(rule, "its heartbeat", &beat, &renewed);
}

async fn a_session_that_never_was_is_unknown(scene: &Scene) {
    let rule = "P2.6 (a session that never was)";
    let key = scene.key();
    let mut stranger = scene.worker_of(&key).await;
    stranger.session = SessionId::new(scene.domain.token_hex(16));
    holds(
        rule,
        "it has no heartbeat",
        !scene.lives(&stranger, rule).await,
    );
    for mode in [EndMode::Now, EndMode::AtExpiry] {
        let ended = scene.end(&stranger, mode, rule).await;
        same(rule, "whether it lived", &ended, &false);
    }
    let message = MessageBody {
        key: key.clone(),
        deadline: None,
    };
    let queued = scene
        .store
        .queue_messages(&stranger.session, vec![message])
        .await;
    same(rule, "whether it is told", &queued.holds(rule), &false);
    let client = scene.store.client_of(&stranger.session).await.holds(rule);
    same(rule, "its client", &client, &None);
    let claimed = scene.claim(&key, &stranger, Expected::Vacant, rule).await;
    same(rule, "a claim for it", &claimed, &Claimed::CandidateGone);
    let freed = scene.free(&key, &stranger, None, rule).await;
    same(rule, "whether it held the id", &freed, &false);
}

async fn registering_again_retires_the_earlier_session(scene: &Scene) {
    let rule = "P2.4 (registering again ends the earlier session)";
    let (key, other) = (scene.key(), scene.key());
    let first = scene.worker_of(&key).await;
    let rival = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &first, rule).await;

    let (_second, registered) = scene.again(&first, rule).await;
    let earlier = Some(first.session.clone());
    same(rule, "the earlier session", &registered.earlier, &earlier);
    holds(
        rule,
        "the earlier session takes no more heartbeats",
        !scene.lives(&first, rule).await,
    );
    let claimed = scene.claim(&other, &first, Expected::Vacant, rule).await;
    same(
        rule,
        "a claim for the earlier session",
        &claimed,
        &Claimed::CandidateGone,
    );
    let taken = scene.take(&key, (&first, epoch), &rival, rule).await;
    let row = taken.held(rule);
    same(
        rule,
        "the holder, until the earlier session is ended",
        &(row.session, row.epoch),
        &(first.session.clone(), epoch),
    );

    let lived = scene.end(&first, EndMode::Now, rule).await;
    same(rule, "whether the earlier session lived", &lived, &true);
    let taken = scene.take(&key, (&first, epoch), &rival, rule).await;
    holds(rule, "the id is free then", taken.placed(rule).0 > epoch);
}

async fn registering_may_be_repeated(scene: &Scene) {
    let rule = "P2.4 (a register whose answer was lost is sent again)";
    let worker = scene.worker(&[scene.ns()]).await;
    let registered = scene.store.register(worker.begin()).await.holds(rule);
    same(
        rule,
        "the earlier session: never itself",
        &registered.earlier,
        &None,
    );
    holds(rule, "it lives", scene.lives(&worker, rule).await);
}

async fn what_has_ended_is_no_earlier_session(scene: &Scene) {
    let rule = "P2.4 (only the latest session can be the earlier one)";
    let first = scene.worker(&[scene.ns()]).await;
    let (second, _) = scene.again(&first, rule).await;
    scene.end(&first, EndMode::Now, rule).await;
    let (third, registered) = scene.again(&second, rule).await;
    let earlier = Some(second.session.clone());
    same(
        rule,
        "the earlier session of the third",
        &registered.earlier,
        &earlier,
    );
    scene.end(&second, EndMode::Now, rule).await;
    scene.end(&third, EndMode::Now, rule).await;
    let (fourth, registered) = scene.again(&third, rule).await;
    same(
        rule,
        "the earlier session, when none lives",
        &registered.earlier,
        &None,
    );
    holds(
        rule,
        "the latest lives",
        scene.lives(&fourth, rule).await && !scene.lives(&second, rule).await,
    );
}

async fn a_session_that_ends_now_frees_its_rows(scene: &Scene) {
    let rule = "P2.9 (its rows are free at once)";
    let (key, other) = (scene.key(), scene.key());
    let worker = scene.worker_of(&key).await;
    let rival = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &worker, rule).await;

    let lived = scene.end(&worker, EndMode::Now, rule).await;
    same(rule, "whether it lived", &lived, &true);
    let lived = scene.end(&worker, EndMode::Now, rule).await;
    same(rule, "whether it lived still", &lived, &false);
    holds(
        rule,
        "it takes no heartbeats",
        !scene.lives(&worker, rule).await,
    );
    let claimed = scene.claim(&other, &worker, Expected::Vacant, rule).await;
    same(rule, "a claim for it", &claimed, &Claimed::CandidateGone);
    let (next, _) = scene
        .take(&key, (&worker, epoch), &rival, rule)
        .await
        .placed(rule);
    holds(rule, "the next epoch is higher", next > epoch);
    scene.holds_row(&key, Some((&rival, next)), rule).await;
}

async fn a_session_that_ends_later_keeps_its_rows(scene: &Scene) {
    let rule = "P2.4 (a session whose worker may be alive)";
    let (key, other) = (scene.key(), scene.key());
    let worker = scene.worker_of(&key).await;
    let rival = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &worker, rule).await;

    let lived = scene.end(&worker, EndMode::AtExpiry, rule).await;
    same(rule, "whether it lived", &lived, &true);
    holds(
        rule,
        "it takes no heartbeats",
        !scene.lives(&worker, rule).await,
    );
    let claimed = scene.claim(&other, &worker, Expected::Vacant, rule).await;
    same(rule, "a claim for it", &claimed, &Claimed::CandidateGone);
    let row = scene
        .take(&key, (&worker, epoch), &rival, rule)
        .await
        .held(rule);
    same(rule, "the epoch of its row", &row.epoch, &epoch);

    scene.end(&worker, EndMode::Now, rule).await;
    let taken = scene.take(&key, (&worker, epoch), &rival, rule).await;
    holds(rule, "it can still be ended at once", taken.placed(rule).1);
}

async fn the_client_of_a_session_is_known(scene: &Scene) {
    let rule = "P2.5 (whose a previous session was)";
    let worker = scene.worker(&[scene.ns()]).await;
    let client = Some(worker.record.client_id.clone());
    let now = scene.store.client_of(&worker.session).await.holds(rule);
    same(rule, "the client of a live session", &now, &client);
    scene.end(&worker, EndMode::Now, rule).await;
    let now = scene.store.client_of(&worker.session).await.holds(rule);
    same(rule, "the client of one that has just ended", &now, &client);
}

// ===== what takes time =====

// The rows of the dead may have been swept meanwhile: whether a holder lost an id is not asked.

async fn a_session_dies_a_lease_after_its_last_heartbeat(scene: &Scene) {
    let rule = "P2.4 (a session expires one lease TTL after its last heartbeat)";
    let ttl = scene.options.lease_ttl;
    let (key, worker, lives, claimed) = scene
        .in_time(ttl, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let worker = scene.worker_of(&key).await;
                scene.wait(scene.just_before(ttl)).await;
                let lives = scene.lives(&worker, rule).await;
                let claimed = scene.claim(&key, &worker, Expected::Vacant, rule).await;
                (key, worker, lives, claimed)
            })
        })
        .await;
    holds(rule, "it lives just before", lives);
    let (epoch, _) = claimed.placed(rule);
    let rival = scene.worker_of(&key).await;
    let _alive = scene.keep_alive(&rival);

    scene.wait_out(ttl).await;
    for _ in 0..2 {
        holds(
            rule,
            "it is dead, and stays dead",
            !scene.lives(&worker, rule).await,
        );
    }
    let claimed = scene
        .claim(&scene.key(), &worker, Expected::Vacant, rule)
        .await;
    same(rule, "a claim for it", &claimed, &Claimed::CandidateGone);
    let client = scene.store.client_of(&worker.session).await.holds(rule);
    let expected = Some(worker.record.client_id.clone());
    same(rule, "its client, known a while yet", &client, &expected);
    let (next, _) = scene
        .take(&key, (&worker, epoch), &rival, rule)
        .await
        .placed(rule);
    holds(rule, "its id goes to another", next > epoch);
    let lived = scene.end(&worker, EndMode::Now, rule).await;
    same(rule, "whether it lived when it was ended", &lived, &false);
    scene.holds_row(&key, Some((&rival, next)), rule).await;
}

async fn a_session_lives_on_by_its_heartbeats(scene: &Scene) {
    let rule = "P2.6 (each heartbeat renews the lease)";
    let ttl = scene.options.lease_ttl;
    let (lives, taken) = scene
        .in_time(ttl * 2, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let worker = scene.worker_of(&key).await;
                let epoch = scene.place(&key, &worker, rule).await;
                let mut lives = true;
                for _ in 0..4 {
                    scene.wait(ttl * 2 / 5).await;
                    lives &= scene.lives(&worker, rule).await;
                }
                let rival = scene.worker_of(&key).await;
                let taken = scene.take(&key, (&worker, epoch), &rival, rule).await;
                (lives, taken)
            })
        })
        .await;
    holds(rule, "it lives longer than its first lease", lives);
    taken.held(rule);
}

async fn a_retired_session_dies_with_its_lease(scene: &Scene) {
    let rule = "P2.4 (a session whose client has registered again expires with its lease)";
    let key = scene.key();
    let first = scene.worker_of(&key).await;
    let epoch = scene.place(&key, &first, rule).await;
    let (second, _) = scene.again(&first, rule).await;
    let _alive = scene.keep_alive(&second);
    // What the retired one says renews nothing.
    scene.lives(&first, rule).await;
    scene.wait_out(scene.options.lease_ttl).await;
    let rival = scene.worker_of(&key).await;
    let taken = scene.take(&key, (&first, epoch), &rival, rule).await;
    holds(rule, "its id is free then", taken.placed(rule).0 > epoch);
    holds(
        rule,
        "the later session lives",
        scene.lives(&second, rule).await,
    );
}

async fn an_ending_session_dies_with_its_lease(scene: &Scene) {
    let rule = "P2.4 (a session that ends later)";
    let ttl = scene.options.lease_ttl;
    let (key, worker, epoch, before) = scene
        .in_time(ttl, rule, || {
            Box::pin(async move {
                let key = scene.key();
                let worker = scene.worker_of(&key).await;
                let epoch = scene.place(&key, &worker, rule).await;
                scene.end(&worker, EndMode::AtExpiry, rule).await;
                scene.wait(scene.just_before(ttl)).await;
                let rival = scene.worker_of(&key).await;
                let before = scene.take(&key, (&worker, epoch), &rival, rule).await;
                (key, worker, epoch, before)
            })
        })
        .await;
    before.held(rule);
    scene.wait_out(ttl).await;
    let rival = scene.worker_of(&key).await;
    let taken = scene.take(&key, (&worker, epoch), &rival, rule).await;
    holds(rule, "its id is free then", taken.placed(rule).0 > epoch);
}
