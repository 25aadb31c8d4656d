//! Beginning a session.

use std::collections::HashSet;

use axum::body::Body;
use http::{Method, StatusCode, header};
use pinboard::store::EventKind;
use serde_json::json;

use super::rig::{
    Answer, Node, OPERATOR, TTL, WORKER, Worker, World, beat, heartbeat, merged, quiet_beat,
    request, session_of,
};

// P2.1, W3.6
#[tokio::test(start_paused = true)]
async fn a_worker_registers_and_is_told_its_session_and_its_lease() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);

    let answer = worker.try_register(&node, json!({})).await;
    assert!(!answer.text.contains(&worker.secret), "{}", answer.text);
    let ack = answer.ok();
    let session = session_of(&ack);
    assert_eq!(
        ack,
        json!({"sessionId": session, "expiresInMs": 15_000, "draining": false})
    );

    // The node sees it at once, and the store has what it said.
    let workers = node.registry.workers.all();
    let view = workers[0].view.read().clone();
    assert_eq!(view.id.as_str(), session);
    assert_eq!(view.record.client_id, "client-1");
    assert_eq!(view.record.advertise_url, worker.url);
    assert!(view.record.update.reachable);
    assert!(view.record.secret.is(worker.secret.as_bytes()));

    let told = node.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].kind, EventKind::Register);
    assert_eq!(told[0].client_id.as_deref(), Some("client-1"));
    assert_eq!(told[0].session_id.as_deref(), Some(&*session));
    assert!(told[0].namespaces.iter().map(|ns| &**ns).eq(["/rooms"]));
}

// P2.4
#[tokio::test(start_paused = true)]
async fn session_ids_are_128_fresh_bits() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let mut seen = HashSet::new();
    for _ in 0..50 {
        let session = worker.register(&node).await;
        assert_eq!(session.len(), 32);
        assert!(
            session
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        );
        assert!(seen.insert(session));
    }
}

// P2.4
#[tokio::test(start_paused = true)]
async fn registering_again_ends_the_earlier_session() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    let second = worker.register(&node).await;
    assert_ne!(first, second);

    let answer = heartbeat(&node, beat(&first)).await;
    answer.refuses(409, "unknown or expired session");
    assert_eq!(answer.json()["reregister"], json!(true));
    heartbeat(&node, beat(&second)).await.ok();
}

// P2.4
#[tokio::test(start_paused = true)]
async fn a_session_expires_one_lease_after_its_last_heartbeat() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    for _ in 0..5 {
        world.wait(TTL * 2 / 3).await;
        heartbeat(&node, quiet_beat(&session)).await.ok();
    }
    world.wait(TTL).await;
    heartbeat(&node, quiet_beat(&session))
        .await
        .refuses(409, "unknown or expired session");
}

// P2
#[tokio::test(start_paused = true)]
async fn unknown_members_are_ignored_and_null_counts_as_absent() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let mut body = worker.registration();
    body["somethingNew"] = json!({"deep": [1, 2, 3]});
    for absent in [
        "hostname",
        "env",
        "envs",
        "takeover",
        "epoch",
        "prevSessionId",
        "instances",
    ] {
        body[absent] = json!(null);
    }
    node.post("/registry/register", WORKER, &body).await.ok();
}

// P9.4
#[tokio::test(start_paused = true)]
async fn what_belongs_to_hostname_aware_mode_is_refused_with_the_reason() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for (member, value) in [
        ("hostname", json!("pr-42.preview.example.com")),
        ("env", json!("pr-42")),
        ("envs", json!({"/rooms": "staging"})),
        ("takeover", json!("deny")),
        ("epoch", json!(1)),
    ] {
        let answer = worker.try_register(&node, json!({member: value})).await;
        answer.refuses(400, &format!("{member} requires hostname-aware mode"));
    }
    worker.register_with(&node, json!({"epoch": 0})).await;
}

// P2
#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let world = World::new().await;
    let node = world.node();
    for (path, limit) in [
        ("/registry/register", 64 << 20),
        ("/registry/heartbeat", 1 << 20),
        ("/registry/release", 1 << 20),
        ("/registry/deregister", 1 << 20),
    ] {
        // Declared: nothing is read, or this would wait for ever.
        let body = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, String>>());
        let mut declared = request(Method::POST, path, WORKER, body);
        declared
            .headers_mut()
            .insert(header::CONTENT_LENGTH, (limit + 1).into());
        let error = format!("the body is longer than {limit} bytes");
        node.send(declared).await.refuses(413, &error);

        // Not declared: no more is read than may be.
        let piece = vec![b' '; 64 << 10];
        let endless = futures_util::stream::repeat(Ok::<_, String>(piece));
        let body = Body::from_stream(endless);
        let undeclared = request(Method::POST, path, WORKER, body);
        node.send(undeclared).await.refuses(413, &error);
    }
}

// P2
#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_not_waited_for_for_ever() {
    let world = World::new().await;
    let node = world.node();
    let body = Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, String>>());
    let answer = node
        .send(request(Method::POST, "/registry/heartbeat", WORKER, body))
        .await;
    assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
}

// P2: `instances` lists can be long.
#[tokio::test(start_paused = true)]
async fn a_worker_with_very_many_instances_registers() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let ids: Vec<_> = (0..60_000).map(|n| format!("room-{n:020}")).collect();
    let body = merged(worker.registration(), json!({"instances": {"/rooms": ids}}));
    assert!(body.to_string().len() > 1 << 20);
    let ack = node.post("/registry/register", WORKER, &body).await.ok();
    assert_eq!(ack.get("duplicates"), None);
    let counts = world.store.row_counts().await.expect("the store");
    assert_eq!(counts, [("*".into(), "/rooms".into(), 60_000)]);
}

// P2: the token comes first, then its scope, then the body.
#[tokio::test(start_paused = true)]
async fn nobody_registers_without_a_token_that_may() {
    let world = World::new().await;
    let node = world.node();
    for path in [
        "/registry/register",
        "/registry/heartbeat",
        "/registry/release",
        "/registry/deregister",
    ] {
        for token in ["", "token-of-nobody"] {
            let answer = node.post_text(path, token, "nonsense").await;
            answer.refuses(401, "unauthorized");
            assert_eq!(answer.json(), json!({"error": "unauthorized"}));
            assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
        }
        let answer = node.post_text(path, OPERATOR, "nonsense").await;
        answer.refuses(403, "forbidden");
        assert_eq!(answer.json(), json!({"error": "forbidden"}));
        node.post_text(path, WORKER, "nonsense").await.malformed();

        let answer: Answer = get(&node, path).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers[header::ALLOW], "POST");
    }
}

async fn get(node: &Node, path: &str) -> Answer {
    node.get(path, WORKER).await
}

// P2: a client that goes away leaves no registration behind that is half done.
#[tokio::test(start_paused = true)]
async fn a_registration_goes_on_when_its_client_has_gone() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    let key = super::rig::room("blue");
    let epoch = world.place(&key, &first).await;

    let again = json!({"prevSessionId": first, "instances": {"/rooms": ["blue"]}});
    let body = merged(worker.registration(), again);
    let given = pinboard::sessions::bodies::register(body.to_string().as_bytes()).expect("a body");
    let headers = request(Method::POST, "/", WORKER, Body::empty());
    let caller = node
        .registry
        .authenticate(headers.headers(), "pinboard:worker")
        .await
        .expect("a worker");
    // Polled until the URL is proved, and dropped then.
    let mut register = Box::pin(node.sessions.register(&caller, given));
    assert!(futures_util::poll!(register.as_mut()).is_pending());
    drop(register);
    world.wait(std::time::Duration::from_millis(100)).await;

    let row = world.row(&key).await.expect("a row");
    assert_ne!(row.session.as_str(), first);
    assert_eq!(row.epoch, epoch);
    heartbeat(&node, quiet_beat(row.session.as_str()))
        .await
        .ok();
    heartbeat(&node, quiet_beat(&first))
        .await
        .refuses(409, "unknown or expired session");
}
