//! A dev node that workers outlived (P4.4).

use std::time::Duration;

use pinboard::store::EventKind;
use serde_json::json;

use super::rig::{TTL, Worker, World, beat, heartbeat};

const SHORT: Duration = Duration::from_secs(2);
const OLD: &str = "0123456789abcdef0123456789abcdef";

async fn left(world: &World) -> Option<Duration> {
    world.store.quarantine().await.expect("the store")
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_with_an_unknown_session_makes_it_last_a_whole_lease() {
    let world = World::cold(SHORT).await;
    let node = world.dev_node();
    world.wait(Duration::from_secs(1)).await;
    assert!(left(&world).await.expect("it stands") <= SHORT);
    heartbeat(&node, beat(OLD))
        .await
        .refuses(409, "unknown or expired session");
    let whole = left(&world).await.expect("it stands");
    assert!(
        whole > TTL - Duration::from_secs(1) && whole <= TTL,
        "{whole:?}"
    );
    assert!(
        node.told()
            .iter()
            .any(|event| event.kind == EventKind::Quarantine)
    );

    // Only once: a worker that never stops asking does not keep it up.
    world.wait(TTL / 2).await;
    heartbeat(&node, beat(OLD)).await;
    assert!(left(&world).await.expect("it stands") <= TTL / 2);
}

#[tokio::test(start_paused = true)]
async fn so_does_a_register_with_a_previous_session() {
    let world = World::cold(SHORT).await;
    let node = world.dev_node();
    let worker = Worker::new(&world, 1);
    worker.register(&node).await;
    assert!(
        left(&world).await.expect("it stands") <= SHORT,
        "a fresh worker shows nothing"
    );

    worker
        .register_with(
            &node,
            json!({"prevSessionId": OLD, "instances": {"/rooms": ["blue"]}}),
        )
        .await;
    assert!(left(&world).await.expect("it stands") > SHORT);
    // What it reclaims serves at once.
    assert!(world.holder(&super::rig::room("blue")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_extended_once_it_is_over_or_by_a_node_of_a_fleet() {
    let world = World::cold(SHORT).await;
    let fleet = world.node();
    heartbeat(&fleet, beat(OLD)).await;
    assert!(left(&world).await.expect("it stands") <= SHORT);

    let dev = world.dev_node();
    world.wait(SHORT).await;
    heartbeat(&dev, beat(OLD)).await;
    assert_eq!(left(&world).await, None);
}
