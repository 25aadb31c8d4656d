//! `GET /registry/workers` (P3.1).

use std::time::Duration;

use serde_json::json;

use crate::sessions::rig::{OPERATOR, ROOMS, Worker, World, heartbeat, merged, quiet_beat};

#[tokio::test(start_paused = true)]
async fn workers_are_listed_without_their_secrets() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;

    let answer = node.get("/registry/workers", OPERATOR).await;
    assert!(!answer.text.contains(&worker.secret), "{}", answer.text);
    assert!(
        !answer.text.to_lowercase().contains("secret"),
        "{}",
        answer.text
    );
    let mut listed = answer.ok();
    let row = listed["workers"][0].take();
    let registered = row["registeredAt"].as_u64().expect("a time");
    assert!(registered > 1_700_000_000_000);
    assert!(row["lastHeartbeatAt"].as_u64().expect("a time") > 0);
    assert_eq!(
        row,
        json!({
            "clientId": "client-1", "sessionId": session, "advertiseUrl": worker.url,
            "hostname": "*", "env": "*", "envs": {}, "namespaces": ["/rooms"],
            "headroom": 1024, "draining": false, "cordoned": false, "reachable": true,
            "registeredAt": registered, "lastHeartbeatAt": row["lastHeartbeatAt"],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn drains_of_either_side_are_shown() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let row = || async {
        let mut listed = node.get("/registry/workers", OPERATOR).await.ok();
        listed["workers"][0].take()
    };
    heartbeat(
        &node,
        merged(quiet_beat(&session), json!({"draining": true})),
    )
    .await
    .ok();
    let shown = row().await;
    assert_eq!(
        (&shown["draining"], &shown["cordoned"]),
        (&json!(true), &json!(false))
    );
    heartbeat(&node, quiet_beat(&session)).await.ok();

    node.post(
        "/registry/drain",
        OPERATOR,
        &json!({"clientId": "client-1", "deadline": null}),
    )
    .await
    .ok();
    let shown = row().await;
    assert_eq!(
        (&shown["draining"], &shown["cordoned"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(shown.get("drainDeadline"), None);

    node.post(
        "/registry/drain",
        OPERATOR,
        &json!({"clientId": "client-1", "deadline": 60}),
    )
    .await
    .ok();
    world.wait(Duration::from_secs(10)).await;
    let shown = row().await;
    assert_eq!(
        (&shown["draining"], &shown["cordoned"]),
        (&json!(true), &json!(false))
    );
    let left = shown["drainDeadline"].as_f64().expect("a number");
    assert!((left - 50.0).abs() < 0.1, "{left}");
}

#[tokio::test(start_paused = true)]
async fn only_those_that_live_and_are_covered_are_listed_the_oldest_first() {
    let world = World::new().await;
    let (one, other) = (world.node(), world.node());
    let mut names = Vec::new();
    for number in 1..=4 {
        let mut worker = Worker::new(&world, number);
        if number == 2 {
            worker.namespaces = vec!["/rooms", "/chat"];
        }
        worker.register(&one).await;
        names.push(worker.client_id);
        std::thread::yield_now();
    }
    let listed = |answer: serde_json::Value| -> Vec<String> {
        let rows = answer["workers"].as_array().expect("a list").clone();
        rows.iter()
            .map(|row| row["clientId"].as_str().expect("a text").to_owned())
            .collect()
    };
    // By any node, at once.
    let mut seen = listed(other.get("/registry/workers", OPERATOR).await.ok());
    seen.sort_unstable();
    assert_eq!(seen, names);
    // `/chat` is not covered, and so neither is the worker that serves it too.
    let mut covered = listed(other.get("/registry/workers", ROOMS).await.ok());
    covered.sort_unstable();
    assert_eq!(covered, ["client-1", "client-3", "client-4"]);

    world.wait(crate::sessions::rig::TTL).await;
    assert!(listed(other.get("/registry/workers", OPERATOR).await.ok()).is_empty());
}
