//! Preparing the store, again and at once.

use std::sync::Arc;

use pinned::durability::StateStore;
use tokio::task::JoinSet;

use super::scene::{Scene, Verdict, holds, key, number};

pub(super) async fn checks(scene: &Scene, other: Arc<dyn StateStore>) {
    at_once(scene, other).await;
    again(scene).await;
    describes_itself(scene);
}

/// Several workers start at the same moment.
async fn at_once(scene: &Scene, other: Arc<dyn StateStore>) {
    let mut tasks = JoinSet::new();
    for store in [&scene.store, &other] {
        for _ in 0..4 {
            tasks.spawn(store.setup());
        }
    }
    for outcome in tasks.join_all().await {
        outcome.holds("D8.3 (setup at once)");
    }
}

/// A worker starts again on a store that has rows.
async fn again(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    room.set(&work, true, number(1)).await.holds("D3.1");
    scene.store.setup().await.holds("D8.3 (setup again)");
    let rule = "D8.3 (setup keeps rows)";
    room.holds_row(rule, &work, Some((true, number(1)))).await;
    // And the epochs.
    room.at(2).rows(rule).await;
    scene.store.setup().await.holds("D8.3 (setup again)");
    room.set(&work, true, number(2))
        .await
        .fenced("D8.3 (setup keeps epochs)", &room.claim);
}

fn describes_itself(scene: &Scene) {
    holds(
        "StateStore::describe",
        "a store says what it is",
        !scene.store.describe().is_empty(),
    );
}
