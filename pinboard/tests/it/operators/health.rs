//! `GET /registry/health` (P3.3).

use std::time::Duration;

use serde_json::json;

use crate::sessions::rig::{OPERATOR, World};

#[tokio::test(start_paused = true)]
async fn a_node_tells_how_it_is() {
    let world = World::cold(Duration::from_secs(10)).await;
    let node = world.node();
    let led = world
        .store
        .lead("sweeper", "node-7", Duration::from_secs(5))
        .await;
    assert!(led.expect("the store"));

    let health = node.get("/registry/health", OPERATOR).await.ok();
    assert_eq!(health["resolutions"], json!({"cached": 12}));
    assert_eq!(health["connections"], json!({"now": 3, "total": 40}));
    assert_eq!(health["quarantine"]["active"], json!(true));
    let until = health["quarantine"]["until"].as_u64().expect("a time");
    assert!(until > 1_700_000_000_000);
    assert_eq!(health["store"]["answers"], json!(true));
    assert_eq!(
        health["store"]["description"],
        json!(world.store.describe())
    );
    assert!(health["store"]["pingMs"].as_f64().is_some());
    assert_eq!(
        health["leases"],
        json!({"sweeper": {"node": "node-7", "expiresInMs": 5_000}})
    );

    world.wait(Duration::from_secs(10)).await;
    let health = node.get("/registry/health", OPERATOR).await.ok();
    assert_eq!(
        health["quarantine"],
        json!({"active": false, "until": null})
    );
    assert_eq!(health["leases"], json!({"sweeper": null}));
}
