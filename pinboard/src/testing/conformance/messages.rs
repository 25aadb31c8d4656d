//! Control messages: they ride heartbeats until they are confirmed (P2.10).

use std::collections::BTreeSet;
use std::time::Duration;

use super::scene::{Scene, Worker};
use super::verdict::{Verdict, counts_down, holds, same};
use crate::store::{EndMode, HeartbeatOutcome, MessageBody, PlacementKey, QueuedMessage};

pub(super) async fn checks(scene: &Scene) {
    messages_come_until_they_are_confirmed(scene).await;
    a_later_message_takes_the_place_of_an_earlier_one(scene).await;
    the_dead_are_told_nothing(scene).await;
    a_new_session_begins_with_none(scene).await;
    many_messages_keep_their_order(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    deadlines_count_down(scene).await;
}

async fn messages_come_until_they_are_confirmed(scene: &Scene) {
    let rule = "P2.10 (delivered again until it is acknowledged)";
    let ns = scene.ns();
    let keys = ["a", "b", "c"].map(|id| PlacementKey::single(ns.clone(), id));
    let worker = scene.worker(std::slice::from_ref(&ns)).await;
    tell(scene, &worker, &keys[..2], Some(100), rule).await;
    tell(scene, &worker, &keys[2..], None, rule).await;

    let first = hear(scene, &worker, &[], rule).await;
    same(
        rule,
        "the messages, in order",
        &about(&first),
        &keys.to_vec(),
    );
    for message in &first[..2] {
        let left = message.body.deadline.unwrap_or_default();
        counts_down(rule, "its deadline", left, Duration::from_secs(100));
    }
    same(rule, "a revocation", &first[2].body.deadline, &None);
    let again = hear(scene, &worker, &[], rule).await;
    same(rule, "the ids of a message", &names(&again), &names(&first));
    let distinct: BTreeSet<_> = names(&first).into_iter().collect();
    same(rule, "how many ids there are", &distinct.len(), &3);

    let acks = [first[1].id.clone(), "no such message".to_owned()];
    let left = hear(scene, &worker, &acks, rule).await;
    let expected = [keys[0].clone(), keys[2].clone()];
    same(rule, "what is left", &about(&left), &expected.to_vec());
    let acks = [first[0].id.clone(), first[2].id.clone()];
    let left = hear(scene, &worker, &acks, rule).await;
    same(rule, "what is left", &about(&left), &Vec::new());
    let left = hear(scene, &worker, &acks, rule).await;
    same(rule, "what is left, told twice", &about(&left), &Vec::new());

    tell(scene, &worker, &keys[..1], Some(10), rule).await;
    let later = hear(scene, &worker, &acks, rule).await;
    same(
        rule,
        "an id is used once: an old confirmation names no new message",
        &about(&later),
        &keys[..1].to_vec(),
    );
}

async fn a_later_message_takes_the_place_of_an_earlier_one(scene: &Scene) {
    let rule = "P2.10 (a later order takes the place of an earlier one)";
    let ns = scene.ns();
    let keys = ["a", "b"].map(|id| PlacementKey::single(ns.clone(), id));
    let elsewhere = PlacementKey::new("elsewhere", ns.clone(), "a");
    let worker = scene.worker(std::slice::from_ref(&ns)).await;
    tell(scene, &worker, &keys, Some(100), rule).await;
    tell(
        scene,
        &worker,
        std::slice::from_ref(&elsewhere),
        Some(100),
        rule,
    )
    .await;
    let before = hear(scene, &worker, &[], rule).await;

    tell(scene, &worker, &keys[..1], None, rule).await;
    let after = hear(scene, &worker, &[], rule).await;
    let expected = [keys[1].clone(), elsewhere.clone(), keys[0].clone()];
    same(rule, "the messages", &about(&after), &expected.to_vec());
    same(rule, "the later one", &after[2].body.deadline, &None);
    // The confirmation of what it replaced was under way.
    let acks = [before[0].id.clone()];
    let after = hear(scene, &worker, &acks, rule).await;
    same(
        rule,
        "the messages, when the earlier one is confirmed",
        &about(&after),
        &expected.to_vec(),
    );
}

async fn the_dead_are_told_nothing(scene: &Scene) {
    let rule = "P2.10 (a session that has ended is told nothing)";
    let key = scene.key();
    let worker = scene.worker_of(&key).await;
    scene.end(&worker, EndMode::Now, rule).await;
    let queued = scene
        .store
        .queue_messages(&worker.session, vec![body(&key, Some(10))])
        .await;
    same(rule, "whether it lives", &queued.holds(rule), &false);
}

async fn a_new_session_begins_with_none(scene: &Scene) {
    let rule = "P2.10 (messages are a session's own)";
    let key = scene.key();
    let first = scene.worker_of(&key).await;
    tell(scene, &first, std::slice::from_ref(&key), None, rule).await;
    let (second, _) = scene.again(&first, rule).await;
    let heard = hear(scene, &second, &[], rule).await;
    same(
        rule,
        "what the next one is told",
        &about(&heard),
        &Vec::new(),
    );
}

async fn many_messages_keep_their_order(scene: &Scene) {
    let rule = "P3.5 (every id of a namespace)";
    let ns = scene.ns();
    let worker = scene.worker(std::slice::from_ref(&ns)).await;
    let key = |n| PlacementKey::single(ns.clone(), format!("id-{n}"));
    let keys: Vec<_> = (0..500).map(key).collect();
    for some in keys.chunks(200) {
        tell(scene, &worker, some, Some(100), rule).await;
    }
    let heard = hear(scene, &worker, &[], rule).await;
    same(
        rule,
        "the messages, in order",
        &about(&heard),
        &keys.to_vec(),
    );
    let acks = names(&heard[..250]);
    let left = hear(scene, &worker, &acks, rule).await;
    same(rule, "what is left", &about(&left), &keys[250..].to_vec());
}

async fn deadlines_count_down(scene: &Scene) {
    let rule = "P2.10 (counted down by the time it waited)";
    let ns = scene.ns();
    let keys = ["soon", "late", "revoked"].map(|id| PlacementKey::single(ns.clone(), id));
    let worker = scene.worker(std::slice::from_ref(&ns)).await;
    let _alive = scene.keep_alive(&worker);
    let bodies = vec![
        body(&keys[0], Some(1)),
        body(&keys[1], Some(100)),
        body(&keys[2], None),
    ];
    let queued = scene.store.queue_messages(&worker.session, bodies).await;
    same(rule, "whether it lives", &queued.holds(rule), &true);
    scene.wait_out(Duration::from_secs(2)).await;
    let heard = hear(scene, &worker, &[], rule).await;
    same(rule, "the messages", &about(&heard), &keys.to_vec());
    let soon = heard[0].body.deadline;
    same(rule, "one that has passed", &soon, &Some(Duration::ZERO));
    let late = heard[1].body.deadline.unwrap_or_default();
    holds(
        rule,
        &format!("two of a hundred seconds have gone: {late:?} are left"),
        late <= Duration::from_secs(98) && late > Duration::from_secs(50),
    );
    same(rule, "a revocation", &heard[2].body.deadline, &None);
}

async fn tell(
    scene: &Scene,
    worker: &Worker,
    keys: &[PlacementKey],
    seconds: Option<u64>,
    rule: &str,
) {
    let bodies = keys.iter().map(|key| body(key, seconds)).collect();
    let queued = scene.store.queue_messages(&worker.session, bodies).await;
    same(rule, "whether it lives", &queued.holds(rule), &true);
}

/// What a heartbeat with these confirmations brings.
async fn hear(scene: &Scene, worker: &Worker, acks: &[String], rule: &str) -> Vec<QueuedMessage> {
    let mut beat = worker.beat();
    beat.acks = acks.to_vec();
    match scene.store.heartbeat(beat).await.holds(rule) {
        HeartbeatOutcome::Renewed { messages, .. } => messages,
        other => panic!("{rule}: expected that the session lives, found {other:?}"),
    }
}

fn body(key: &PlacementKey, seconds: Option<u64>) -> MessageBody {
    MessageBody {
        key: key.clone(),
        deadline: seconds.map(Duration::from_secs),
    }
}

fn names(messages: &[QueuedMessage]) -> Vec<String> {
    messages.iter().map(|message| message.id.clone()).collect()
}

fn about(messages: &[QueuedMessage]) -> Vec<PlacementKey> {
    let keys = messages.iter().map(|message| message.body.key.clone());
    keys.collect()
}
