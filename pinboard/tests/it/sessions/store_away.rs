//! While the store is away (P12.4), and calls that break off in the middle.

use std::time::Duration;

use http::{Method, StatusCode};
use pinboard::store::Fence;
use pinboard::testing::{CutOff, StoreFault, StoreOp};
use serde_json::{Value, json};

use super::rig::{
    OPERATOR, WORKER, Worker, World, heartbeat, quiet_beat, request, room, session_of,
};

const AWAY: &str = "the registry store does not answer";

#[tokio::test(start_paused = true)]
async fn every_call_says_so_and_works_again_afterwards() {
    let world = World::new().await;
    let (world, faults) = world.faulty();
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for cut in [CutOff::Refused, CutOff::Silent(Duration::from_secs(2))] {
        let session = worker.register(&node).await;
        let item = json!({"sessionId": session, "namespace": "/rooms", "id": "blue"});
        let calls = [
            ("POST", "/registry/register", WORKER, worker.registration()),
            ("POST", "/registry/heartbeat", WORKER, quiet_beat(&session)),
            ("POST", "/registry/heartbeat", WORKER, quiet_beat("another")),
            ("POST", "/registry/release", WORKER, item),
            (
                "POST",
                "/registry/deregister",
                WORKER,
                json!({"sessionId": session}),
            ),
            ("GET", "/registry/workers", OPERATOR, json!(null)),
            ("GET", "/registry/stats", OPERATOR, json!(null)),
            ("GET", "/registry/overview", OPERATOR, json!(null)),
            ("GET", "/registry/events", OPERATOR, json!(null)),
            (
                "POST",
                "/registry/drain",
                OPERATOR,
                json!({"clientId": "client-1", "deadline": null}),
            ),
            (
                "POST",
                "/registry/undrain",
                OPERATOR,
                json!({"clientId": "client-1"}),
            ),
            (
                "POST",
                "/registry/wind_down",
                OPERATOR,
                json!({"namespace": "/rooms", "id": "blue", "deadline": 5}),
            ),
            (
                "POST",
                "/registry/wind_down",
                OPERATOR,
                json!({"namespace": "/rooms", "deadline": null}),
            ),
        ];
        faults.cut(cut);
        for (method, path, token, body) in calls {
            let method: Method = method.parse().expect("a method");
            let call = request(method, path, token, body.to_string().into());
            node.send(call).await.refuses(503, AWAY);
        }
        faults.restore();
        let session = worker.register(&node).await;
        heartbeat(&node, quiet_beat(&session)).await.ok();
    }
}

// P3.6
#[tokio::test(start_paused = true)]
async fn a_node_without_its_store_lives_and_is_not_ready() {
    let (world, faults) = World::new().await.faulty();
    let node = world.node();
    assert_eq!(node.get("/readyz", "").await.status, StatusCode::OK);
    for cut in [CutOff::Refused, CutOff::Silent(Duration::from_secs(3_600))] {
        faults.cut(cut);
        world.wait(Duration::from_millis(250)).await;
        node.get("/readyz", "").await.refuses(503, AWAY);
        assert_eq!(node.get("/healthz", "").await.status, StatusCode::OK);

        let health = node.get("/registry/health", OPERATOR).await.ok();
        assert_eq!(health["store"]["answers"], json!(false));
        assert_eq!(health["quarantine"], json!(null));
        assert_eq!(health["resolutions"], json!({"cached": 12}));

        faults.restore();
        world.wait(Duration::from_millis(250)).await;
        assert_eq!(node.get("/readyz", "").await.status, StatusCode::OK);
    }
    // Whoever asks often does not have the store asked as often.
    let before = faults.calls(StoreOp::Ping);
    for _ in 0..100 {
        node.get("/readyz", "").await;
    }
    assert!(faults.calls(StoreOp::Ping) <= before + 1);
}

/// Whatever breaks off, the next try that succeeds has all instances of the worker, under their epochs.
async fn registers_after(fault: StoreFault, op: StoreOp, failures: usize) {
    let (world, faults) = World::new().await.faulty();
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    let mut epochs = Vec::new();
    for id in ["a", "b", "c"] {
        epochs.push(world.place(&room(id), &first).await);
    }
    let again = json!({"prevSessionId": first, "instances": {"/rooms": ["a", "b", "c"]}});
    for _ in 0..failures {
        faults.next(op, fault);
        let answer = worker.try_register(&node, again.clone()).await;
        if op != StoreOp::EndSession {
            answer.refuses(503, AWAY);
        }
    }
    let ack = worker.register_with(&node, again).await;
    assert_eq!(ack.get("duplicates"), None, "{op:?} {fault:?}");
    for (id, epoch) in ["a", "b", "c"].into_iter().zip(epochs) {
        let row = world.row(&room(id)).await.expect("a row");
        assert_eq!(
            (row.session.to_string(), row.epoch),
            (session_of(&ack), epoch)
        );
    }
    heartbeat(&node, quiet_beat(&session_of(&ack))).await.ok();
}

// P2.5, P4.6
#[tokio::test(start_paused = true)]
async fn a_registration_that_breaks_off_anywhere_is_made_good_by_the_next() {
    for op in [
        StoreOp::Client,
        StoreOp::ClientOf,
        StoreOp::Register,
        StoreOp::SessionsSince,
        StoreOp::Reclaim,
        StoreOp::Row,
        StoreOp::Heartbeat,
        StoreOp::EndSession,
    ] {
        for fault in [StoreFault::Before, StoreFault::After] {
            for failures in 1..=3 {
                registers_after(fault, op, failures).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_falls_silent_holds_no_registration_for_ever() {
    let (world, faults) = World::new().await.faulty();
    let node = world.node();
    let worker = Worker::new(&world, 1);
    faults.next(StoreOp::Register, StoreFault::Silence);
    worker
        .try_register(&node, json!({}))
        .await
        .refuses(503, AWAY);
    worker.register(&node).await;
}

// P3.5: a row is never fenced whose holder has not been told.
#[tokio::test(start_paused = true)]
async fn a_wind_down_that_breaks_off_leaves_no_fence_that_nobody_was_told_of() {
    for whole in [false, true] {
        for op in [
            StoreOp::Row,
            StoreOp::HeldBy,
            StoreOp::QueueMessages,
            StoreOp::Fence,
        ] {
            for fault in [StoreFault::Before, StoreFault::After] {
                let (world, faults) = World::new().await.faulty();
                let node = world.node();
                let session = Worker::new(&world, 1).register(&node).await;
                world.place(&room("blue"), &session).await;
                let mut order = json!({"namespace": "/rooms", "deadline": 60});
                if !whole {
                    order["id"] = json!("blue");
                }
                faults.next(op, fault);
                let answer = node.post("/registry/wind_down", OPERATOR, &order).await;
                if answer.status != StatusCode::OK {
                    answer.refuses(503, AWAY);
                }
                faults.calm();

                let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
                let told = ack["messages"].as_array().map_or(0, Vec::len);
                let fenced = world.row(&room("blue")).await.expect("a row").fence;
                assert!(told == 1 || fenced.is_none(), "{op:?} {fault:?}");

                // Repeating it is all that it takes.
                let queued = if whole { json!(1) } else { json!(true) };
                let answer = node.post("/registry/wind_down", OPERATOR, &order).await;
                assert_eq!(answer.ok(), json!({"queued": queued}));
            }
        }
    }
}

// P3.5, P2.5: the order is told again, or the registration has failed.
#[tokio::test(start_paused = true)]
async fn orders_for_rows_that_move_are_not_lost_when_telling_them_fails() {
    let (world, faults) = World::new().await.faulty();
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;
    let fence = Fence {
        starts_in: Duration::from_secs(60),
        ends_in: Duration::from_secs(75),
    };
    world
        .store
        .fence(&room("blue"), Some(fence))
        .await
        .expect("the store");
    let again = json!({"prevSessionId": first, "instances": {"/rooms": ["blue"]}});
    for fault in [StoreFault::Before, StoreFault::After] {
        faults.next(StoreOp::QueueMessages, fault);
        worker
            .try_register(&node, again.clone())
            .await
            .refuses(503, AWAY);
    }
    let ack = worker.register_with(&node, again).await;
    let ack = heartbeat(&node, quiet_beat(&session_of(&ack))).await.ok();
    let told: Vec<&Value> = ack["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["id"], json!("blue"));
}
