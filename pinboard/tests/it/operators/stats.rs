//! `GET /registry/stats` (P3.2).

use std::time::Duration;

use pinned_wire::headers::PROXY_SECRET;
use serde_json::{Value, json};

use crate::sessions::rig::{OPERATOR, ROOMS, Script, Worker, World, address};

#[tokio::test(start_paused = true)]
async fn each_worker_is_asked_and_named() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;
    world.urls.asked();

    let answer = node.get("/registry/stats", OPERATOR).await;
    assert!(!answer.text.contains(&worker.secret));
    // What it says of who it is does not count, and it cannot say that it did not answer.
    assert_eq!(
        answer.ok(),
        json!({"workers": [{
            "clientId": "client-1", "sessionId": session, "advertiseUrl": worker.url,
            "draining": false, "leaseFlaps": 2,
            "instances": [{"namespace": "/rooms", "id": "blue", "connections": 2},
                          {"namespace": "/rooms", "id": "red", "connections": 1}],
        }]})
    );
    // P6.2: the secret goes to this route, at the addresses that were proved.
    let asked = world.urls.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].url.as_str(), "http://10.0.0.1:8000/_pinned/stats");
    assert_eq!(asked[0].headers[PROXY_SECRET], worker.secret);
    assert_eq!(asked[0].addresses, Some(vec![address("10.0.0.1:8000")]));
    assert_eq!(asked[0].timeout, Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_answer_has_an_error_in_its_place() {
    let world = World::new().await;
    let node = world.node();
    let scripts = [
        (Script::Refuses, "no connection could be made"),
        (Script::Breaks, "no valid answer came"),
        (Script::Hangs, "it did not answer in time"),
        (Script::Long, "its answer is too long"),
        (
            Script::Fixed(500, String::new()),
            "it answered 500 Internal Server Error",
        ),
        (Script::Fixed(302, String::new()), "it answered 302 Found"),
        (
            Script::Fixed(403, String::new()),
            "it answered 403 Forbidden",
        ),
        (
            Script::Fixed(200, "<html>".to_owned()),
            "its answer is not a JSON object",
        ),
        (
            Script::Fixed(200, "[]".to_owned()),
            "its answer is not a JSON object",
        ),
        (
            Script::Fixed(200, "null".to_owned()),
            "its answer is not a JSON object",
        ),
    ];
    let mut expected = Vec::new();
    for (number, (script, why)) in (1..).zip(scripts) {
        let worker = Worker::new(&world, number);
        let session = worker.register(&node).await;
        world.urls.script(&worker.url, script);
        expected.push(json!({
            "clientId": worker.client_id, "sessionId": session, "advertiseUrl": worker.url, "error": why,
        }));
    }
    let before = world.domain.monotonic();
    let mut answer = node.get("/registry/stats", OPERATOR).await.ok();
    assert_eq!(world.domain.monotonic() - before, Duration::from_secs(5));
    assert_eq!(sorted(answer["workers"].take()), sorted(json!(expected)));
}

#[tokio::test(start_paused = true)]
async fn workers_are_asked_side_by_side_and_not_all_at_once() {
    let world = World::new().await;
    let node = world.node();
    for number in 1..=40 {
        let worker = Worker::new(&world, number);
        worker.register(&node).await;
        let answers = Box::new(Script::Worker(worker.secret.clone()));
        world
            .urls
            .script(&worker.url, Script::Slow(Duration::from_secs(2), answers));
    }
    let before = world.domain.monotonic();
    let answer = node.get("/registry/stats", OPERATOR).await.ok();
    // 32, and then the others.
    assert_eq!(world.domain.monotonic() - before, Duration::from_secs(4));
    let rows = answer["workers"].as_array().expect("a list");
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|row| row.get("error").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_hangs_is_not_waited_for_for_ever() {
    let world = World::new().await;
    let node = world.node();
    for number in 1..=200 {
        let worker = Worker::new(&world, number);
        worker.register(&node).await;
        world.urls.script(&worker.url, Script::Hangs);
    }
    let before = world.domain.monotonic();
    let answer = node.get("/registry/stats", OPERATOR).await.ok();
    assert_eq!(world.domain.monotonic() - before, Duration::from_secs(15));
    let rows = answer["workers"].as_array().expect("a list");
    assert_eq!(rows.len(), 200);
    assert!(rows.iter().all(|row| row.get("error").is_some()));
}

#[tokio::test(start_paused = true)]
async fn workers_that_are_not_covered_are_not_asked() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.namespaces = vec!["/chat"];
    worker.register(&node).await;
    world.urls.asked();
    let answer = node.get("/registry/stats", ROOMS).await.ok();
    assert_eq!(answer, json!({"workers": []}));
    assert!(world.urls.asked().is_empty());
}

fn sorted(rows: Value) -> Vec<String> {
    let rows = rows.as_array().expect("a list").clone();
    let mut rows: Vec<_> = rows.iter().map(Value::to_string).collect();
    rows.sort_unstable();
    rows
}
