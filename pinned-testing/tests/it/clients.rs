//! Apps and clients.

use std::time::Duration;

use http::StatusCode;
use pinned::{HostOptions, PinnedWorker};
use pinned_testing::{
    BodyError, Gate, ScriptedPlacements, TestApp, pinned_app, pinned_app_with, pinned_client,
};
use serde_json::json;

use crate::room::Room;

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_type_without_a_namespace_is_served_under_threads() -> pinned::Result<()> {
    // H17.5
    let app = pinned_app::<Room>().await?;
    let client = app.client();
    for count in 1..=2 {
        let answer = client.post("/threads/blue/increment").send().await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json::<u64>().await, count);
    }
    assert_eq!(app.host::<Room>().len(), 1);
    app.shutdown().await
}

#[tokio::test]
async fn options_name_another_namespace() -> pinned::Result<()> {
    let app = pinned_app_with::<Room>(HostOptions::new().namespace("/rooms")).await?;
    assert_eq!(app.host::<Room>().namespace(), "/rooms");
    app.shutdown().await
}

#[tokio::test]
async fn a_request_carries_its_query_headers_and_body() -> pinned::Result<()> {
    let client = pinned_client::<Room>().await?;
    let answer = client
        .put("/threads/blue/echo?a=1")
        .query([("b", "two words")])
        .header("x-trace", "t1")
        .json(&json!(["x"]))
        .send()
        .await;
    assert_eq!(
        answer.json::<serde_json::Value>().await,
        json!({ "query": "a=1&b=two+words", "trace": "t1", "body": ["x"] })
    );
    client.into_app().shutdown().await
}

#[tokio::test]
async fn a_body_is_read_as_it_comes() -> pinned::Result<()> {
    // H17.5
    let client = pinned_client::<Room>().await?;
    let mut body = client.get("/threads/blue/numbers").send().await.body();
    assert_eq!(body.next_chunk(SOON).await.as_deref(), Some(&b"1"[..]));
    assert_eq!(body.drain(SOON).await, "23");
    client.into_app().shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stays_silent_times_out_and_can_be_read_on() -> pinned::Result<()> {
    let client = pinned_client::<Room>().await?;
    let mut body = client.get("/threads/blue/silence").send().await.body();
    for _ in 0..2 {
        let outcome = body.try_next_chunk(SOON).await;
        assert!(
            matches!(outcome, Err(BodyError::TimedOut(SOON))),
            "{outcome:?}"
        );
    }
    drop(body);
    client.into_app().shutdown().await
}

#[tokio::test]
async fn a_dropped_send_is_a_client_that_left() -> pinned::Result<()> {
    let gate = Gate::new();
    let app = TestApp::start(
        PinnedWorker::builder()
            .host::<Room>("/rooms")
            .state(gate.clone()),
    )
    .await?;
    let client = app.client();
    tokio::select! {
        biased;
        _ = client.post("/rooms/blue/gated").send() => panic!("the gate is shut"),
        () = gate.reached() => {}
    }
    gate.open();
    // The handler runs to its end without its client.
    let answer = client.post("/rooms/blue/increment").send().await;
    assert_eq!(answer.json::<u64>().await, 2);
    app.shutdown().await
}

#[tokio::test]
async fn a_placed_worker_is_sent_an_attestation() -> pinned::Result<()> {
    // H17.5, H2.2
    let placements = ScriptedPlacements::new();
    let builder = PinnedWorker::builder().host::<Room>("/rooms");
    let app = TestApp::start(builder.placements(placements.clone())).await?;
    for session in [Some("s1"), Some("s2"), None] {
        placements.set_session(session);
        let answer = app.client().post("/rooms/blue/increment").send().await;
        assert_eq!(answer.status(), StatusCode::OK);
        let answer = app
            .client()
            .unattested()
            .post("/rooms/blue/increment")
            .send()
            .await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
    app.shutdown().await
}
