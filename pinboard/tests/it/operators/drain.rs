//! `POST /registry/drain` and `undrain` (P3.4).

use std::time::Duration;

use serde_json::{Value, json};

use crate::sessions::rig::{Node, OPERATOR, ROOMS, TTL, Worker, World, heartbeat, quiet_beat};

async fn drain(node: &Node, client: &str, deadline: Value) -> crate::sessions::rig::Answer {
    let order = json!({"clientId": client, "deadline": deadline});
    node.post("/registry/drain", OPERATOR, &order).await
}

async fn undrain(node: &Node, client: &str) -> crate::sessions::rig::Answer {
    node.post("/registry/undrain", OPERATOR, &json!({"clientId": client}))
        .await
}

#[tokio::test(start_paused = true)]
async fn null_cordons_until_it_is_taken_back() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;
    let answer = drain(&node, "client-1", json!(null)).await.ok();
    assert_eq!(answer, json!({"draining": true, "drainDeadline": null}));
    // This node places nothing there from now on.
    let id = pinboard::store::SessionId::new(&*session);
    let known = node.registry.workers.get(&id).expect("it lives");
    assert!(known.view.read().drain.is_some());

    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(ack, json!({"expiresInMs": 15_000, "draining": true}));
    // It survives a registration, and any time.
    let ack = worker.register_with(&node, json!({})).await;
    assert_eq!(ack["draining"], json!(true));
    world.wait(Duration::from_secs(100 * 86_400)).await;
    let session = crate::sessions::rig::session_of(&worker.register_with(&node, json!({})).await);
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(ack["draining"], json!(true));

    assert_eq!(
        undrain(&node, "client-1").await.ok(),
        json!({"draining": false, "drainDeadline": null})
    );
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(ack, json!({"expiresInMs": 15_000, "draining": false}));
    // There is nothing to take back: that is no error.
    undrain(&node, "client-1").await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_at_least_a_lease_away_and_counts_down() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    for (given, left) in [
        (json!(0), 15.0),
        (json!(3), 15.0),
        (json!(15), 15.0),
        (json!(40.5), 40.5),
    ] {
        let answer = drain(&node, "client-1", given).await.ok();
        assert_eq!(answer, json!({"draining": true, "drainDeadline": left}));
    }
    world.wait(Duration::from_secs(10)).await;
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    let left = ack["drainDeadline"].as_f64().expect("a number");
    assert!((left - 30.5).abs() < 0.1, "{left}");
}

#[tokio::test(start_paused = true)]
async fn a_timed_drain_is_forgotten_seven_days_after_its_deadline() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    worker.register(&node).await;
    drain(&node, "client-1", json!(60)).await.ok();
    world.wait(Duration::from_secs(7 * 86_400)).await;
    let ack = worker.register_with(&node, json!({})).await;
    assert_eq!(ack["draining"], json!(true));
    world.wait(Duration::from_secs(61)).await;
    let ack = worker.register_with(&node, json!({})).await;
    assert_eq!(ack["draining"], json!(false));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_down_takes_the_order_too() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    worker.register(&node).await;
    world.wait(TTL * 3).await;
    drain(&node, "client-1", json!(60)).await.ok();
    let ack = worker.register_with(&node, json!({})).await;
    assert_eq!(ack["draining"], json!(true));
}

#[tokio::test(start_paused = true)]
async fn the_unknown_and_the_uncovered_are_refused_alike() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.namespaces = vec!["/rooms", "/chat"];
    let session = worker.register(&node).await;
    let never = "client-that-never-was".repeat(12);
    for (token, client) in [
        (OPERATOR, "client-2"),
        (OPERATOR, &*never),
        (ROOMS, "client-1"),
        (ROOMS, "client-2"),
    ] {
        for path in ["/registry/drain", "/registry/undrain"] {
            let order = json!({"clientId": client, "deadline": null});
            let answer = node.post(path, token, &order).await;
            answer.refuses(403, "forbidden");
            assert_eq!(answer.json(), json!({"error": "forbidden"}));
        }
    }
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    assert_eq!(ack["draining"], json!(false));
    assert_eq!(
        drain(&node, "", json!(null)).await.malformed(),
        "clientId: expected 1 to 256 bytes of text without control characters"
    );
}
