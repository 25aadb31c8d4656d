//! `POST /registry/wind_down` (P3.5).

use std::time::Duration;

use pinboard::store::{Claim, Claimed, Expected, FenceState, PlacementKey, Release, SessionId};
use serde_json::{Value, json};

use crate::sessions::rig::{
    Answer, Node, OPERATOR, ROOMS, TTL, Worker, World, heartbeat, quiet_beat, room,
};

async fn order(node: &Node, body: Value) -> Answer {
    node.post("/registry/wind_down", OPERATOR, &body).await
}

async fn wind_down(node: &Node, id: &str, deadline: Value) -> Value {
    let body = json!({"namespace": "/rooms", "id": id, "deadline": deadline});
    order(node, body).await.ok()["queued"].take()
}

/// The orders that an ack has: ids and deadlines, whole seconds.
async fn told(node: &Node, session: &str) -> Vec<(String, Option<u64>)> {
    let ack = heartbeat(node, quiet_beat(session)).await.ok();
    let messages = ack.get("messages").cloned().unwrap_or(json!([]));
    let messages = messages.as_array().expect("a list").clone();
    messages
        .iter()
        .map(|message| {
            assert_eq!(message["type"], json!("wind_down"));
            let id = message["id"].as_str().expect("an id").to_owned();
            let left = message["deadline"].as_f64().map(|left| left.round() as u64);
            (id, left)
        })
        .collect()
}

async fn fence(world: &World, id: &str) -> Option<FenceState> {
    world.row(&room(id)).await.expect("a row").fence
}

fn ahead(state: Option<FenceState>) -> (u64, u64) {
    match state {
        Some(FenceState::Ahead { starts_in, ends_in }) => (
            starts_in.as_secs_f64().round() as u64,
            ends_in.as_secs_f64().round() as u64,
        ),
        other => panic!("expected a fence that is ahead, found {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_holder_is_told_and_the_row_is_fenced() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    world.place(&room("blue"), &session).await;
    assert_eq!(wind_down(&node, "blue", json!(60)).await, json!(true));
    assert_eq!(ahead(fence(&world, "blue").await), (60, 75));
    assert_eq!(told(&node, &session).await, [("blue".to_owned(), Some(60))]);

    // A deadline under one lease becomes one lease; the newest order counts.
    for soon in [json!(0), json!(3.5), json!(15)] {
        assert_eq!(wind_down(&node, "blue", soon).await, json!(true));
        assert_eq!(ahead(fence(&world, "blue").await), (15, 30));
        assert_eq!(told(&node, &session).await, [("blue".to_owned(), Some(15))]);
    }

    // null revokes, for the row and for the holder.
    assert_eq!(wind_down(&node, "blue", json!(null)).await, json!(true));
    assert_eq!(fence(&world, "blue").await, None);
    assert_eq!(told(&node, &session).await, [("blue".to_owned(), None)]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_nobody_holds_is_not_queued() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;
    for deadline in [json!(60), json!(null)] {
        assert_eq!(wind_down(&node, "blue", deadline).await, json!(false));
    }
    assert!(world.row(&room("blue")).await.is_none());
    let nowhere = json!({"namespace": "/nowhere", "deadline": 60});
    assert_eq!(order(&node, nowhere).await.ok(), json!({"queued": 0}));

    // Neither does a holder that is dead.
    world.place(&room("blue"), &session).await;
    world.wait(TTL * 2).await;
    for deadline in [json!(60), json!(null)] {
        assert_eq!(wind_down(&node, "blue", deadline).await, json!(false));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_for_one_lease_after_the_deadline_and_nobody_takes_the_row() {
    let world = World::new().await;
    let node = world.node();
    let holder = Worker::new(&world, 1).register(&node).await;
    let other = Worker::new(&world, 2).register(&node).await;
    world.place(&room("blue"), &holder).await;
    wind_down(&node, "blue", json!(20)).await;
    let take = || async {
        let row = world.row(&room("blue")).await.expect("a row");
        let claim = Claim {
            key: room("blue"),
            candidate: SessionId::new(&*other),
            expected: Expected::HeldByDead {
                session: row.session,
                epoch: row.epoch,
            },
            above: 0,
        };
        world.store.claim(claim).await.expect("the store")
    };
    for second in 0..35 {
        assert!(matches!(take().await, Claimed::Held(_)), "after {second} s");
        let state = fence(&world, "blue").await;
        match second {
            0..20 => assert!(matches!(state, Some(FenceState::Ahead { .. })), "{second}"),
            _ => assert!(
                matches!(state, Some(FenceState::Standing { .. })),
                "{second}"
            ),
        }
        world.wait(Duration::from_secs(1)).await;
        for session in [&holder, &other] {
            heartbeat(&node, quiet_beat(session)).await.ok();
        }
    }
    // Its holder lives, and may have begun the id after the order came (P4.6).
    assert_eq!(fence(&world, "blue").await, Some(FenceState::Passed));
    assert!(matches!(take().await, Claimed::Held(_)));
}

#[tokio::test(start_paused = true)]
async fn without_an_id_every_holder_of_the_namespace_is_told() {
    let world = World::new().await;
    let node = world.node();
    let mut serves_both = Worker::new(&world, 1);
    serves_both.namespaces = vec!["/chat", "/rooms"];
    let one = serves_both.register(&node).await;
    let other = Worker::new(&world, 2).register(&node).await;
    let dead = Worker::new(&world, 3).register(&node).await;
    for number in 0..700 {
        world.place(&room(&format!("one-{number}")), &one).await;
    }
    world.place(&room("other"), &other).await;
    world
        .place(&PlacementKey::single("/chat", "lobby"), &one)
        .await;
    world.place(&room("dead"), &dead).await;
    node.post(
        "/registry/deregister",
        crate::sessions::rig::WORKER,
        &json!({"sessionId": dead}),
    )
    .await
    .ok();

    let all = json!({"namespace": "/rooms", "deadline": 60});
    assert_eq!(order(&node, all).await.ok(), json!({"queued": 701}));
    assert_eq!(ahead(fence(&world, "one-699").await), (60, 75));
    assert_eq!(ahead(fence(&world, "other").await), (60, 75));
    let chat = world.row(&PlacementKey::single("/chat", "lobby")).await;
    assert_eq!(chat.expect("a row").fence, None);
    let heard = told(&node, &one).await;
    assert_eq!(heard.len(), 700);
    assert!(heard.iter().all(|(_, left)| *left == Some(60)));
    assert_eq!(told(&node, &other).await, [("other".to_owned(), Some(60))]);

    let none = json!({"namespace": "/rooms", "deadline": null});
    assert_eq!(order(&node, none).await.ok(), json!({"queued": 701}));
    assert_eq!(fence(&world, "one-699").await, None);
    assert_eq!(told(&node, &other).await, [("other".to_owned(), None)]);
}

#[tokio::test(start_paused = true)]
async fn the_namespace_must_be_covered_and_the_body_well_formed() {
    let world = World::new().await;
    let node = world.node();
    let chat = json!({"namespace": "/chat", "deadline": null});
    node.post("/registry/wind_down", ROOMS, &chat)
        .await
        .refuses(403, "forbidden");
    for (body, said) in [
        (
            json!({"namespace": "/rooms", "deadline": null, "env": "pr-42"}),
            "env requires hostname-aware mode",
        ),
        (
            json!({"namespace": "/rooms", "id": "blue", "deadline": 1, "env": "*"}),
            "env requires hostname-aware mode",
        ),
        (json!({"deadline": null}), "missing field `namespace`"),
        (
            json!({"namespace": "rooms", "deadline": null}),
            "namespace: namespace must be '/' followed by a single path segment",
        ),
        (
            json!({"namespace": "/rooms", "id": "", "deadline": null}),
            "id: id must be non-empty",
        ),
        (
            json!({"namespace": "/rooms", "id": "a b", "deadline": null}),
            "id: id must contain only [A-Za-z0-9._~-]",
        ),
        (
            json!({"namespace": "/rooms", "id": 5, "deadline": null}),
            "id: expected a string",
        ),
    ] {
        assert_eq!(order(&node, body.clone()).await.malformed(), said, "{body}");
    }
    let absent = json!({"namespace": "/rooms", "id": null, "env": null, "deadline": null});
    assert_eq!(order(&node, absent).await.ok(), json!({"queued": 0}));
}

// The message and the fence find the row wherever it goes meanwhile.
#[tokio::test(start_paused = true)]
async fn a_worker_that_registers_again_meanwhile_is_told_all_the_same() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;
    let again = json!({"prevSessionId": first, "instances": {"/rooms": ["blue"]}});
    let (queued, ack) = tokio::join!(
        wind_down(&node, "blue", json!(60)),
        worker.register_with(&node, again)
    );
    assert_eq!(queued, json!(true));
    let session = crate::sessions::rig::session_of(&ack);
    assert_eq!(told(&node, &session).await, [("blue".to_owned(), Some(60))]);
    assert_eq!(ahead(fence(&world, "blue").await), (60, 75));
}

// P3.5, P4.6: a fence whose holder was told only before it got the id anew would let the row be taken from a holder that lives.
#[tokio::test(start_paused = true)]
async fn a_worker_that_gets_the_id_anew_meanwhile_is_told_of_that_one() {
    for (whole, told_by) in [(false, 3_500), (true, 5_500)] {
        let world = World::new().await;
        let node = world.node();
        let (slow, faults) = world.faulty();
        let operator = slow.node();
        let session = Worker::new(&world, 1).register(&node).await;
        world.place(&room("blue"), &session).await;
        let second = Duration::from_secs(1);
        faults.latency(second..=second);

        let mut body = json!({"namespace": "/rooms", "deadline": 60});
        if !whole {
            body["id"] = json!("blue");
        }
        let churn = async {
            world.wait(Duration::from_millis(told_by)).await;
            let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
            let message = ack["messages"][0]["msgId"].clone();
            assert!(message.is_string(), "told before the fence: {ack}");
            let release = Release {
                session: SessionId::new(&*session),
                key: room("blue"),
                epoch: None,
            };
            let freed = world.store.release(&[release]).await.expect("the store");
            assert_eq!(freed, 1);
            let mut confirms = quiet_beat(&session);
            confirms["acks"] = json!([message]);
            heartbeat(&node, confirms).await.ok();
            world.place(&room("blue"), &session).await;
        };
        let (queued, ()) = tokio::join!(order(&operator, body), churn);
        queued.ok();
        let told = told(&node, &session).await;
        let told: Vec<_> = told.iter().map(|(id, _)| id.as_str()).collect();
        assert!(fence(&world, "blue").await.is_some(), "whole: {whole}");
        assert_eq!(told, ["blue"], "whole: {whole}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_dies_with_the_worker_that_never_heard_it() {
    // P3.5, P4.2, and `cases.md`: "wind-down begun, then the worker dies before it acts: the id is placeable after one lease, and
    // the wind-down record is gone"
    let world = World::new().await;
    let node = world.node();
    let holder = Worker::new(&world, 1).register(&node).await;
    let other = Worker::new(&world, 2).register(&node).await;
    world.place(&room("blue"), &holder).await;
    assert_eq!(wind_down(&node, "blue", json!(3_600)).await, json!(true));
    // It is never heard of again; the other one goes on.
    let mut waited = Duration::ZERO;
    let placed = loop {
        let row = world.row(&room("blue")).await.expect("a row");
        let claim = Claim {
            key: room("blue"),
            candidate: SessionId::new(&*other),
            expected: Expected::HeldByDead {
                session: row.session,
                epoch: row.epoch,
            },
            above: 0,
        };
        match world.store.claim(claim).await.expect("the store") {
            Claimed::Held(_) => {}
            placed => break placed,
        }
        world.wait(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
        heartbeat(&node, quiet_beat(&other)).await.ok();
    };
    assert!(
        matches!(placed, Claimed::Placed { replaced: true, .. }),
        "{placed:?}"
    );
    assert!(waited <= TTL + Duration::from_secs(1), "{waited:?}");
    assert_eq!(fence(&world, "blue").await, None);
    assert!(told(&node, &other).await.is_empty());
    // Its next session is told nothing of an id that is not its own any more.
    let again = Worker::new(&world, 1).register(&node).await;
    assert!(told(&node, &again).await.is_empty());
}
