//! Renewing a session (P2.6, P2.7).

use std::time::Duration;

use pinboard::settings::Settings;
use pinboard::store::{Drain, EventKind, SessionId, SessionView};
use serde_json::{Value, json};

use super::rig::{
    Node, Script, TTL, Worker, World, address, beat, heartbeat, merged, passport_json, quiet_beat,
    room, session_of,
};

const UNKNOWN: &str = "unknown or expired session";
const NOT_ITS_OWN: &str = "the advertised URL answers for someone else";

async fn view(node: &Node, session: &str) -> SessionView {
    node.registry
        .workers
        .refresh_now()
        .await
        .expect("the store");
    let worker = node.registry.workers.get(&SessionId::new(session));
    let view = worker.expect("it lives").view.read().clone();
    (*view).clone()
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_renews_and_says_what_is_new() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let more = json!({"headroom": 77, "draining": true});
    let ack = heartbeat(&node, merged(beat(&session), more)).await.ok();
    // W12.4: the worker's own drain is not echoed.
    assert_eq!(ack, json!({"expiresInMs": 15_000, "draining": false}));
    let view = view(&node, &session).await;
    assert_eq!(view.record.update.headroom, 77);
    assert!(view.record.update.draining);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_knows_is_asked_to_register_again() {
    let world = World::new().await;
    let node = world.node();
    let answer = heartbeat(&node, beat("0123456789abcdef0123456789abcdef")).await;
    answer.refuses(409, UNKNOWN);
    assert_eq!(answer.json(), json!({"error": UNKNOWN, "reregister": true}));
    assert!(world.urls.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn any_node_takes_the_heartbeat_of_a_worker_that_has_just_registered_with_another() {
    let world = World::new().await;
    let (one, other) = (world.node(), world.node());
    other
        .registry
        .workers
        .refresh_now()
        .await
        .expect("the store");
    let session = Worker::new(&world, 1).register(&one).await;
    heartbeat(&other, beat(&session)).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_url_that_answers_for_someone_else_ends_the_session() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let scripts = [
        Script::Fixed(404, String::new()),
        Script::Fixed(403, String::new()),
        Script::Fixed(302, String::new()),
        Script::Fixed(200, r#"{"value":"another"}"#.to_owned()),
        Script::Worker("another secret".to_owned()),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let id = format!("room-{number}");
        worker.answers(&world);
        let session = worker.register(&node).await;
        world.place(&room(&id), &session).await;
        node.told();

        world.urls.script(&worker.url, script);
        let answer = heartbeat(&node, beat(&session)).await;
        answer.refuses(409, NOT_ITS_OWN);
        assert_eq!(answer.json()["reregister"], json!(true));
        heartbeat(&node, quiet_beat(&session))
            .await
            .refuses(409, UNKNOWN);
        let told = node.told();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].kind, EventKind::SessionLost);

        // The worker may be alive, and its lease runs: nobody else gets its ids.
        assert_eq!(world.holder(&room(&id)).await, Some(session.clone()));
        worker.answers(&world);
        let again = json!({"prevSessionId": session, "instances": {"/rooms": [id]}});
        let ack = worker.register_with(&node, again).await;
        assert_eq!(ack.get("duplicates"), None);
        assert_eq!(world.holder(&room(&id)).await, Some(session_of(&ack)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_that_does_not_answer_keeps_new_ids_away_until_it_does() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;
    for script in [
        Script::Refuses,
        Script::Breaks,
        Script::Hangs,
        Script::Fixed(503, String::new()),
    ] {
        world.urls.script(&worker.url, script);
        let ack = heartbeat(&node, beat(&session)).await.ok();
        assert_eq!(ack["expiresInMs"], json!(15_000));
        assert!(!view(&node, &session).await.record.update.reachable);
        // A heartbeat without a pair proves nothing.
        heartbeat(&node, quiet_beat(&session)).await.ok();
        assert!(!view(&node, &session).await.record.update.reachable);

        worker.answers(&world);
        heartbeat(&node, beat(&session)).await.ok();
        assert!(view(&node, &session).await.record.update.reachable);
    }
}

// W2.3: a worker waits for 5 s.
#[tokio::test(start_paused = true)]
async fn a_url_that_hangs_does_not_hold_up_the_renewal() {
    for (ttl, patience) in [(15_000, 3_500), (3_000, 1_000), (300, 200)] {
        let world = World::new().await;
        let mut settings = Settings::default();
        settings.lease_ttl = Duration::from_millis(ttl);
        let node = world.node_with(settings, &passport_json());
        let worker = Worker::new(&world, 1);
        let session = worker.register(&node).await;
        world.urls.script(&worker.url, Script::Hangs);
        let before = world.domain.monotonic();
        heartbeat(&node, beat(&session)).await.ok();
        let took = world.domain.monotonic() - before;
        assert_eq!(took, Duration::from_millis(patience));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_moves_is_followed_within_the_claims() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.url = "http://pod.cluster.local:8000".to_owned();
    worker.answers(&world);
    world
        .names
        .set("pod.cluster.local", &["10.0.0.7", "10.0.0.8"]);
    let session = worker.register(&node).await;

    // The same addresses the other way round are no move.
    world
        .names
        .set("pod.cluster.local", &["10.0.0.8", "10.0.0.7"]);
    heartbeat(&node, beat(&session)).await.ok();
    assert_eq!(view(&node, &session).await.record.update.moved_to, None);

    world.names.set("pod.cluster.local", &["10.0.0.9"]);
    world.urls.asked();
    heartbeat(&node, beat(&session)).await.ok();
    let moved = vec![address("10.0.0.9:8000")];
    assert_eq!(world.urls.asked()[0].addresses.as_ref(), Some(&moved));
    assert_eq!(moved_to(&view(&node, &session).await), moved);

    // Out of the claims: that address is never dialled, the one from before stands.
    world.names.set("pod.cluster.local", &["169.254.169.254"]);
    heartbeat(&node, beat(&session)).await.ok();
    assert!(world.urls.asked().is_empty());
    let stays = view(&node, &session).await;
    assert!(!stays.record.update.reachable);
    assert_eq!(moved_to(&stays), moved);

    // A heartbeat without a pair leaves it there.
    heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(moved_to(&view(&node, &session).await), moved);

    world.names.set("pod.cluster.local", &["10.0.0.9"]);
    heartbeat(&node, beat(&session)).await.ok();
    assert!(view(&node, &session).await.record.update.reachable);
}

fn moved_to(view: &SessionView) -> Vec<std::net::SocketAddr> {
    let record = &view.record;
    let moved = record.update.moved_to.as_ref();
    moved.unwrap_or(&record.addresses).clone()
}

// P2.7, P3.4
#[tokio::test(start_paused = true)]
async fn acks_echo_the_drain_and_no_grant_outlives_it() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;
    let left = Duration::from_secs(40);
    let ordered = world
        .store
        .order_drain("client-1", Some(Drain::By { left }))
        .await;
    assert!(ordered.expect("the store"));

    for (waits, expires, left) in [
        (0, 15_000, 40.0),
        (14, 15_000, 26.0),
        (14, 12_000, 12.0),
        (11, 1_000, 1.0),
    ] {
        world.wait(Duration::from_secs(waits)).await;
        let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
        assert_eq!(ack["draining"], json!(true));
        assert_eq!(rounded(&ack["drainDeadline"]), left);
        let granted = ack["expiresInMs"].as_u64().expect("a number");
        assert!(granted <= expires && granted + 10 > expires, "{granted}");
    }
    world.wait(Duration::from_secs(5)).await;
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(
        (&ack["expiresInMs"], &ack["drainDeadline"]),
        (&json!(0), &json!(0.0))
    );
    // It survives a registration.
    let ack = worker.register_with(&node, json!({})).await;
    assert_eq!(
        (&ack["expiresInMs"], &ack["draining"]),
        (&json!(0), &json!(true))
    );
}

// P2.7: of the worker's own drain too.
#[tokio::test(start_paused = true)]
async fn a_grant_ends_with_the_workers_own_deadline() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let own = json!({"draining": true, "drainDeadline": 4.5});
    let ack = heartbeat(&node, merged(beat(&session), own)).await.ok();
    assert_eq!(ack, json!({"expiresInMs": 4_500, "draining": false}));
}

fn rounded(seconds: &Value) -> f64 {
    seconds.as_f64().expect("a number").round()
}

#[tokio::test(start_paused = true)]
async fn many_workers_beat_for_a_long_time() {
    let world = World::new().await;
    let nodes = [world.node(), world.node(), world.node()];
    let mut sessions = Vec::new();
    for number in 1..=20 {
        sessions.push(Worker::new(&world, number).register(&nodes[0]).await);
    }
    for round in 0..30 {
        for (at, session) in sessions.iter().enumerate() {
            heartbeat(&nodes[(at + round) % 3], beat(session))
                .await
                .ok();
        }
        world.wait(TTL / 5).await;
    }
}
