//! Handing placements back (P2.8).

use pinboard::store::EventKind;
use serde_json::{Value, json};

use super::rig::{Answer, Node, WORKER, Worker, World, room};

async fn release(node: &Node, body: Value) -> Answer {
    node.post("/registry/release", WORKER, &body).await
}

fn item(session: &str, id: &str) -> Value {
    json!({"sessionId": session, "namespace": "/rooms", "id": id})
}

fn item_at(session: &str, id: &str, epoch: u64) -> Value {
    json!({"sessionId": session, "namespace": "/rooms", "id": id, "epoch": epoch.to_string()})
}

#[tokio::test(start_paused = true)]
async fn one_placement_or_a_list_of_them_is_freed() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let epoch = world.place(&room("a"), &session).await;
    for id in ["b", "c"] {
        world.place(&room(id), &session).await;
    }
    node.told();

    let freed = release(&node, item_at(&session, "a", epoch)).await.ok();
    assert_eq!(freed, json!({"released": 1}));
    assert_eq!(world.holder(&room("a")).await, None);
    let told = node.told();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].kind, EventKind::Released);
    assert_eq!(told[0].id.as_deref(), Some("a"));
    assert_eq!(told[0].epoch, Some(epoch));
    assert_eq!(told[0].client_id.as_deref(), Some("client-1"));

    let list = json!([
        item(&session, "b"),
        item(&session, "c"),
        item(&session, "nobodys")
    ]);
    assert_eq!(release(&node, list).await.ok(), json!({"released": 2}));
    assert_eq!(world.holder(&room("b")).await, None);
    let told = node.told();
    assert_eq!(told.len(), 1, "one entry for a list: {told:?}");

    assert_eq!(release(&node, json!([])).await.ok(), json!({"released": 0}));
    assert!(node.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_a_row_that_names_the_session_and_the_epoch_is_freed() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let other = Worker::new(&world, 2).register(&node).await;
    let epoch = world.place(&room("blue"), &session).await;

    for body in [
        item(&other, "blue"),
        item("0123456789abcdef0123456789abcdef", "blue"),
        item_at(&session, "blue", epoch + 1),
        item_at(&session, "blue", 0),
    ] {
        let freed = release(&node, body.clone()).await.ok();
        assert_eq!(freed, json!({"released": 0}), "{body}");
    }
    assert_eq!(world.holder(&room("blue")).await, Some(session.clone()));
    let freed = release(&node, item(&session, "blue")).await.ok();
    assert_eq!(freed, json!({"released": 1}));

    // The epoch counter stays.
    assert!(world.place(&room("blue"), &other).await > epoch);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_release_says_what_was_expected_where() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    world.place(&room("blue"), &session).await;
    let mut wrong = Vec::new();
    for epoch in ["", "-1", "+1", "1.0", "0x1", " 1", "9223372036854775808"] {
        let mut body = item(&session, "blue");
        body["epoch"] = json!(epoch);
        wrong.push((
            body,
            "[0].epoch: expected a placement epoch in decimal digits",
        ));
    }
    let mut number = item(&session, "blue");
    number["epoch"] = json!(5);
    wrong.extend([
        (number.clone(), "epoch: expected a string"),
        (
            json!([item(&session, "blue"), number]),
            "[1].epoch: expected a string",
        ),
        (
            json!([item(&session, "blue"), 5]),
            "[1]: expected struct ReleaseItem",
        ),
        (
            json!({"sessionId": "s", "namespace": "/rooms"}),
            "missing field `id`",
        ),
        (
            json!([item(&session, "blue"), item(&session, "a/b")]),
            "[1].id: id must contain only [A-Za-z0-9._~-]",
        ),
        (
            json!({"sessionId": "s", "namespace": "rooms{}:", "id": "a"}),
            "[0].namespace: namespace must be '/' followed by a single path segment",
        ),
        (json!("text"), "expected a JSON object, or a list of them"),
    ]);
    for (body, said) in wrong {
        assert_eq!(
            release(&node, body.clone()).await.malformed(),
            said,
            "{body}"
        );
    }
    assert_eq!(world.holder(&room("blue")).await, Some(session));
}

// W3.15: an instance that closes after its session was lost is released under that session.
#[tokio::test(start_paused = true)]
async fn a_dead_sessions_row_is_freed_by_its_namespace() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    world.place(&room("blue"), &session).await;
    world.wait(super::rig::TTL * 2).await;
    let stranger = node
        .post(
            "/registry/release",
            super::rig::STRANGER,
            &item(&session, "blue"),
        )
        .await;
    stranger.refuses(403, "forbidden");
    let freed = release(&node, item(&session, "blue")).await.ok();
    assert_eq!(freed, json!({"released": 1}));
}
