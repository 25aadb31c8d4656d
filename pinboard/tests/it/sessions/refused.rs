//! What a node logs of registrations that it refuses: who, why, and not too often (P1.5, P2.2, P2.3).

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Method;
use pinned_testing::{CapturedLogs, LogEvent, capture_logs};
use serde_json::json;
use tracing::Level;

use super::rig::{Node, OPERATOR, STRANGER, Script, WORKER, Worker, World, request};

const PEER: &str = "10.9.8.7";

/// A register that comes from [`PEER`]; the status of the answer.
async fn register(node: &Node, token: &str, body: &str) -> u16 {
    let body = Body::from(body.to_owned());
    let mut request = request(Method::POST, "/registry/register", token, body);
    let peer = SocketAddr::new(PEER.parse().expect("an address"), 40_000);
    request.extensions_mut().insert(ConnectInfo(peer));
    node.send(request).await.status.as_u16()
}

/// What was said of refused registrations, which is without any secret.
fn said(logs: &CapturedLogs, secrets: &[&str]) -> Vec<LogEvent> {
    let mut events = logs.with_target("pinboard::sessions::register");
    events.retain(|event| event.level == Level::WARN);
    for event in &events {
        let shown = format!("{event:?}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_the_key_does_not_cover_is_named_with_the_worker() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.namespaces = vec!["/rooms", "/other"];
    let logs = capture_logs();
    let body = worker.registration().to_string();
    assert_eq!(register(&node, WORKER, &body).await, 403);

    let said = said(&logs, &[&worker.secret, WORKER]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].message, "a worker may not register");
    for (field, value) in [
        ("client_id", "client-1"),
        ("advertise_url", "http://10.0.0.1:8000"),
        ("key", "workers"),
        ("peer", PEER),
        ("why", "its key does not cover the namespace /other"),
    ] {
        assert_eq!(said[0].field(field), Some(value), "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_id_of_somebody_else_and_a_url_that_is_not_covered_are_told() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    worker.register(&node).await;
    let logs = capture_logs();
    let mut taken = worker.clone();
    taken.namespaces = vec!["/other"];
    assert_eq!(
        register(&node, STRANGER, &taken.registration().to_string()).await,
        403
    );
    let mut far = worker.clone();
    far.url = "http://11.0.0.1:8000".to_owned();
    assert_eq!(
        register(&node, WORKER, &far.registration().to_string()).await,
        403
    );

    let said = said(&logs, &[&worker.secret]);
    let whys: Vec<_> = said.iter().filter_map(|event| event.field("why")).collect();
    assert_eq!(whys.len(), 2, "{said:?}");
    assert!(whys[0].contains("registered this client id"), "{whys:?}");
    assert!(whys[1].contains("11.0.0.1"), "{whys:?}");
}

#[tokio::test(start_paused = true)]
async fn a_url_that_does_not_answer_or_answers_for_another_is_told() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let another = Script::Worker("another secret".to_owned());
    for (script, status, message, why) in [
        (
            Script::Refuses,
            503,
            "a worker cannot register: its advertised URL does not answer",
            "no connection could be made",
        ),
        (
            another,
            403,
            "a worker may not register: its advertised URL does not prove to be its own",
            "it does not know the challenge",
        ),
    ] {
        world.urls.script(&worker.url, script);
        let logs = capture_logs();
        let body = worker.registration().to_string();
        assert_eq!(register(&node, WORKER, &body).await, status);
        let said = said(&logs, &[&worker.secret, "another secret", "value-of-"]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].message, message);
        assert_eq!(said[0].field("why"), Some(why));
        assert_eq!(said[0].field("client_id"), Some("client-1"));
        assert_eq!(said[0].field("advertise_url"), Some(worker.url.as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_a_workers_is_told_with_where_it_came_from() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let body = worker.registration().to_string();
    for (token, status, why) in [
        ("token-of-nobody", 401, "its token is missing or not known"),
        (OPERATOR, 403, "its token has not the scope pinboard:worker"),
    ] {
        let logs = capture_logs();
        assert_eq!(register(&node, token, &body).await, status);
        let said = said(&logs, &[token, &worker.secret]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].field("why"), Some(why));
        assert_eq!(said[0].field("peer"), Some(PEER));
    }
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_cannot_be_read_is_told_with_its_key() {
    let world = World::new().await;
    let node = world.node();
    let logs = capture_logs();
    assert_eq!(register(&node, WORKER, r#"{"clientId": 5}"#).await, 400);
    let said = said(&logs, &[WORKER]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].message, "a registration is malformed");
    assert_eq!(said[0].field("key"), Some("workers"));
    assert_eq!(said[0].field("why"), Some("clientId: expected a string"));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_tries_again_and_again_is_told_once_a_minute() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    world.urls.script(&worker.url, Script::Refuses);
    let logs = capture_logs();
    for _ in 0..12 {
        worker.try_register(&node, json!({})).await;
        node.post_text("/registry/register", "token-of-nobody", "{}")
            .await
            .refuses(401, "unauthorized");
        world.wait(Duration::from_secs(10)).await;
    }
    let said = said(&logs, &[]);
    let of = |message: &str| -> Vec<_> {
        said.iter()
            .filter(|event| event.message.contains(message))
            .filter_map(|event| event.field("repeated"))
            .collect()
    };
    assert_eq!(of("does not answer"), ["0", "5"]);
    assert_eq!(of("may not register"), ["0", "5"]);
}
