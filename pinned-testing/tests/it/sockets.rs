//! WebSockets without a connection.

use std::time::Duration;

use http::StatusCode;
use pinned::PinnedWorker;
use pinned_testing::{Gate, TestApp, pinned_app};

use crate::room::Room;

#[tokio::test]
async fn a_socket_talks_and_closes() -> pinned::Result<()> {
    let app = pinned_app::<Room>().await?;
    let request = app
        .client()
        .websocket("/threads/blue/chat")
        .protocols(["chat.v1", "chat.v2"]);
    let mut socket = request.await.expect("accepted");
    assert_eq!(socket.protocol(), Some("chat.v2"));
    socket
        .send_text("hello")
        .await
        .expect("the server is there");
    assert_eq!(socket.recv_text().await.as_deref(), Some("hello"));
    socket.close(4000, "enough").await;
    assert_eq!(socket.recv_close().await.0, 4000);
    assert!(socket.recv().await.is_none());
    app.shutdown().await
}

#[tokio::test]
async fn a_refused_socket_is_an_answer() -> pinned::Result<()> {
    let app = pinned_app::<Room>().await?;
    let refusal = app.client().websocket("/threads/blue/never").await;
    let refusal = refusal.expect_err("refused");
    assert_eq!(refusal.status(), StatusCode::PAYMENT_REQUIRED);
    assert_eq!(refusal.text().await, "not for free");
    app.shutdown().await
}

#[tokio::test]
async fn a_socket_outlives_nothing_of_its_instance() -> pinned::Result<()> {
    // H6.7
    let app = pinned_app::<Room>().await?;
    let mut socket = app
        .client()
        .websocket("/threads/blue/chat")
        .await
        .expect("accepted");
    let (stopped, close) = tokio::join!(app.shutdown(), socket.recv_close());
    assert_eq!(close.0, 1012);
    stopped
}

#[tokio::test]
async fn a_client_that_disconnects_is_noticed_at_once() -> pinned::Result<()> {
    let left = Gate::new();
    let builder = PinnedWorker::builder().host::<Room>("/rooms");
    let app = TestApp::start(builder.state(left.clone())).await?;
    let socket = app
        .client()
        .websocket("/rooms/blue/chat")
        .await
        .expect("accepted");
    socket.disconnect();
    left.reached().await;
    left.open();
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_client_that_vanishes_is_found_out_by_its_silence() -> pinned::Result<()> {
    let left = Gate::new();
    let builder = PinnedWorker::builder().host::<Room>("/rooms");
    let app = TestApp::start(builder.state(left.clone())).await?;
    let socket = app
        .client()
        .websocket("/rooms/blue/chat")
        .await
        .expect("accepted");
    let domain = app.worker().domain().clone();
    let before = domain.monotonic();
    socket.vanish();
    left.reached().await;
    left.open();
    // A ping after 20 s of silence, and 20 s to answer it.
    assert!(domain.monotonic() - before >= Duration::from_secs(40));
    app.shutdown().await
}
