//! `/healthz` and `/readyz` (P3.6).

use http::StatusCode;
use pinboard::operators::{NodeState, Readiness};

use crate::sessions::rig::World;

#[tokio::test(start_paused = true)]
async fn a_node_lives_whatever_it_is_doing_and_is_ready_when_it_serves() {
    let world = World::new().await;
    for (state, why) in [
        (NodeState::Serving, None),
        (NodeState::Stopping, Some("stopping")),
        (NodeState::Displaced, Some("displaced")),
    ] {
        let node = world.node();
        node.readiness.enter(state);
        let alive = node.get("/healthz", "").await;
        assert_eq!(
            (alive.status, &*alive.text),
            (StatusCode::OK, r#"{"status":"ok"}"#)
        );
        let ready = node.get("/readyz", "").await;
        match why {
            None => assert_eq!(
                (ready.status, &*ready.text),
                (StatusCode::OK, r#"{"status":"ready"}"#)
            ),
            Some(why) => ready.refuses(503, why),
        }
    }
}

#[test]
fn a_node_that_stops_is_never_ready_again() {
    let readiness = Readiness::default();
    assert_eq!(readiness.state(), NodeState::Starting);
    readiness.enter(NodeState::Serving);
    readiness.clone().enter(NodeState::Stopping);
    readiness.enter(NodeState::Serving);
    readiness.enter(NodeState::Starting);
    assert_eq!(readiness.state(), NodeState::Stopping);
    readiness.enter(NodeState::Displaced);
    assert_eq!(readiness.state(), NodeState::Displaced);
}
