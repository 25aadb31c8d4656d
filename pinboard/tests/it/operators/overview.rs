//! `GET /registry/overview` (P3.3).

use serde_json::json;

use crate::sessions::rig::{
    OPERATOR, ROOMS, Script, Worker, World, heartbeat, merged, quiet_beat, room,
};

#[tokio::test(start_paused = true)]
async fn one_call_has_the_counts_of_a_console() {
    let world = World::new().await;
    let node = world.node();
    let mut sessions = Vec::new();
    for number in 1..=5 {
        let mut worker = Worker::new(&world, number);
        if number == 5 {
            worker.namespaces = vec!["/chat"];
        }
        sessions.push(worker.register(&node).await);
    }
    for id in ["blue", "red"] {
        world.place(&room(id), &sessions[0]).await;
    }
    let chat = pinboard::store::PlacementKey::single("/chat", "lobby");
    world.place(&chat, &sessions[4]).await;
    // One drains by itself, one is cordoned, one has a deadline, and the last does not answer.
    heartbeat(
        &node,
        merged(quiet_beat(&sessions[0]), json!({"draining": true})),
    )
    .await
    .ok();
    for (client, deadline) in [("client-2", json!(null)), ("client-3", json!(60))] {
        let order = json!({"clientId": client, "deadline": deadline});
        node.post("/registry/drain", OPERATOR, &order).await.ok();
    }
    world.urls.script("http://10.0.0.5:8000", Script::Refuses);

    let overview = node.get("/registry/overview", OPERATOR).await.ok();
    assert_eq!(
        overview,
        json!({
            "workers": 5, "draining": 3, "degraded": 1, "windingDown": 1,
            "instances": 3, "connections": 4 * 3,
            "namespaces": [{"namespace": "/chat", "env": "*", "instances": 1},
                           {"namespace": "/rooms", "env": "*", "instances": 2}],
            "resolutions": {"cached": 12},
        })
    );
    let overview = node.get("/registry/overview", ROOMS).await.ok();
    assert_eq!(
        (&overview["workers"], &overview["instances"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(overview["namespaces"].as_array().map(Vec::len), Some(1));
}
