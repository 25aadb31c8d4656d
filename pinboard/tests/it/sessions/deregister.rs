//! Ending a session (P2.9).

use pinboard::store::EventKind;
use serde_json::json;

use super::rig::{Node, WORKER, Worker, World, beat, heartbeat, room};

async fn deregister(node: &Node, session: &str) -> super::rig::Answer {
    node.post(
        "/registry/deregister",
        WORKER,
        &json!({"sessionId": session}),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn the_session_ends_now_and_its_rows_are_free() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let other = Worker::new(&world, 2).register(&node).await;
    let epoch = world.place(&room("blue"), &session).await;
    node.told();

    assert_eq!(deregister(&node, &session).await.ok(), json!({}));
    heartbeat(&node, beat(&session))
        .await
        .refuses(409, "unknown or expired session");
    assert_eq!(
        node.registry.workers.all().len(),
        1,
        "this node sees it at once"
    );
    let told = node.told();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].kind, EventKind::SessionLost);

    let claim = pinboard::store::Claim {
        key: room("blue"),
        candidate: pinboard::store::SessionId::new(other),
        expected: pinboard::store::Expected::HeldByDead {
            session: pinboard::store::SessionId::new(session),
            epoch,
        },
        above: 0,
    };
    let claimed = world.store.claim(claim).await.expect("the store");
    assert!(matches!(claimed, pinboard::store::Claimed::Placed { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_ended_may_be_ended_again() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    for _ in 0..3 {
        deregister(&node, &session).await.ok();
    }
    deregister(&node, "0123456789abcdef0123456789abcdef")
        .await
        .ok();
}
