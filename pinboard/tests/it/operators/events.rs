//! `GET /registry/events` (P3.3).

use serde_json::{Value, json};

use crate::sessions::rig::{OPERATOR, ROOMS, Worker, World};

fn kinds(page: &Value) -> Vec<&str> {
    let events = page["events"].as_array().expect("a list");
    events
        .iter()
        .map(|event| event["kind"].as_str().expect("a kind"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn events_are_numbered_and_read_on_from() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let order = json!({"clientId": "client-1", "deadline": null});
    node.post("/registry/drain", OPERATOR, &order).await.ok();
    node.post(
        "/registry/undrain",
        OPERATOR,
        &json!({"clientId": "client-1"}),
    )
    .await
    .ok();
    let order = json!({"namespace": "/rooms", "id": "blue", "deadline": 60});
    node.post("/registry/wind_down", OPERATOR, &order)
        .await
        .ok();
    node.tell().await;

    let page = node.get("/registry/events", OPERATOR).await.ok();
    assert_eq!(kinds(&page), ["register", "drain", "undrain", "wind_down"]);
    let first = &page["events"][0];
    assert_eq!(first["clientId"], json!("client-1"));
    assert_eq!(first["sessionId"], json!(session));
    assert_eq!(first["namespaces"], json!(["/rooms"]));
    assert!(first["at"].as_u64().expect("a time") > 1_700_000_000_000);
    assert_eq!(page["events"][1]["detail"], json!("cordon"));
    assert_eq!(page["events"][3]["id"], json!("blue"));

    let next = page["next"].as_u64().expect("a number");
    let path = format!("/registry/events?after={next}");
    assert!(kinds(&node.get(&path, OPERATOR).await.ok()).is_empty());
    let seq = first["seq"].as_u64().expect("a number");
    let path = format!("/registry/events?after={seq}&limit=2&other=1");
    let page = node.get(&path, OPERATOR).await.ok();
    assert_eq!(kinds(&page), ["drain", "undrain"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_covered_is_left_out_and_read_past() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.namespaces = vec!["/rooms", "/chat"];
    worker.register(&node).await;
    node.tell().await;
    let all = node.get("/registry/events", OPERATOR).await.ok();
    let page = node.get("/registry/events", ROOMS).await.ok();
    assert!(kinds(&page).is_empty());
    assert_eq!(page["next"], all["next"]);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_query_says_what_was_expected() {
    let world = World::new().await;
    let node = world.node();
    for (query, said) in [
        ("after=-1", "after: expected the number of an event"),
        ("after=", "after: expected the number of an event"),
        (
            "after=18446744073709551616",
            "after: expected the number of an event",
        ),
        ("limit=0", "limit: expected a number from 1 to 1000"),
        ("limit=1001", "limit: expected a number from 1 to 1000"),
        ("limit=many", "limit: expected a number from 1 to 1000"),
    ] {
        let answer = node
            .get(&format!("/registry/events?{query}"), OPERATOR)
            .await;
        assert_eq!(answer.malformed(), said);
    }
}
