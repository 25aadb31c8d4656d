use std::time::Duration;

use pinned_testing::{BodyReader, TestApp, TestClient, TestSocket, pinned_app};
use serde_json::{Value, json};

use super::{BACKLOG, HISTORY, MAX_TEXT, Room};

const SOON: Duration = Duration::from_secs(5);

async fn enter(client: &TestClient, name: &str) -> TestSocket {
    client
        .websocket(format!("/rooms/lobby/ws?name={name}"))
        .await
        .expect("the room lets everyone in")
}

/// The next event that is about something else than who is here.
async fn heard(socket: &mut TestSocket) -> Value {
    loop {
        let event = event(socket).await;
        if event["type"] != "presence" {
            return event;
        }
    }
}

/// Reads on until `here` are here.
async fn sees_present(socket: &mut TestSocket, here: usize) {
    while event(socket).await != json!({"type": "presence", "here": here}) {}
}

async fn event(socket: &mut TestSocket) -> Value {
    let text = socket.recv_text().await.expect("the room says something");
    serde_json::from_str(&text).expect("JSON")
}

/// The next server-sent event.
async fn streamed(events: &mut BodyReader) -> Value {
    let chunk = events
        .next_chunk(SOON)
        .await
        .expect("a stream that goes on");
    let text = std::str::from_utf8(&chunk).expect("UTF-8");
    serde_json::from_str(text.trim().strip_prefix("data: ").expect("an event")).expect("JSON")
}

async fn post(client: &TestClient, from: &str, text: &str) -> u16 {
    let line = json!({"from": from, "text": text});
    client
        .post("/rooms/lobby/messages")
        .json(&line)
        .send()
        .await
        .status()
        .as_u16()
}

fn message(from: &str, text: &str) -> Value {
    json!({"type": "message", "from": from, "text": text})
}

async fn app() -> TestApp {
    pinned_app::<Room>().await.expect("the options are right")
}

#[tokio::test(start_paused = true)]
async fn everyone_in_a_room_hears_what_is_said_there() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let (mut ada, mut bob) = (enter(&client, "ada").await, enter(&client, "bob").await);
    let mut events = client.get("/rooms/lobby/events").send().await.body();
    let mut elsewhere = client
        .websocket("/rooms/attic/ws?name=eve")
        .await
        .expect("accepted");

    ada.send_text("hello").await.expect("connected");
    for socket in [&mut ada, &mut bob] {
        assert_eq!(heard(socket).await, message("ada", "hello"));
    }
    assert_eq!(post(&client, "carol", "hi from curl").await, 204);
    assert_eq!(heard(&mut bob).await, message("carol", "hi from curl"));
    let streamed = [
        streamed(&mut events).await,
        streamed(&mut events).await,
        streamed(&mut events).await,
    ];
    assert_eq!(streamed[0]["type"], "presence");
    assert_eq!(
        streamed[1..],
        [message("ada", "hello"), message("carol", "hi from curl")]
    );

    elsewhere.send_text("alone here").await.expect("connected");
    assert_eq!(heard(&mut elsewhere).await, message("eve", "alone here"));
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_reads_the_last_messages_first() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    for number in 0..HISTORY + 10 {
        post(&client, "ada", &number.to_string()).await;
    }
    let mut bob = enter(&client, "bob").await;
    for number in 10..HISTORY + 10 {
        assert_eq!(event(&mut bob).await, message("ada", &number.to_string()));
    }
    assert_eq!(
        event(&mut bob).await,
        json!({"type": "presence", "here": 1})
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn everyone_sees_who_comes_and_goes() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let mut ada = enter(&client, "ada").await;
    sees_present(&mut ada, 1).await;
    let mut bob = enter(&client, "bob").await;
    let events = client.get("/rooms/lobby/events").send().await.body();
    sees_present(&mut ada, 3).await;

    drop(events);
    sees_present(&mut ada, 2).await;
    bob.close(1000, "bye").await;
    assert_eq!(bob.recv_close().await.0, 1000);
    sees_present(&mut ada, 1).await;

    enter(&client, "carol").await.disconnect();
    sees_present(&mut ada, 2).await;
    sees_present(&mut ada, 1).await;
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_is_told_how_much_it_missed() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let mut slow = client.get("/rooms/lobby/events").send().await.body();
    assert_eq!(streamed(&mut slow).await["type"], "presence");
    for number in 0..BACKLOG + 10 {
        assert_eq!(post(&client, "ada", &number.to_string()).await, 204);
    }
    assert_eq!(
        streamed(&mut slow).await,
        json!({"type": "lagged", "missed": 10})
    );
    assert_eq!(streamed(&mut slow).await, message("ada", "10"));
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_holds_up_nobody() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let mut slow = enter(&client, "slow").await;
    sees_present(&mut slow, 1).await;
    // More than its connection and its backlog hold together.
    let long = "x".repeat(MAX_TEXT);
    for _ in 0..4 * BACKLOG {
        assert_eq!(post(&client, "ada", &long).await, 204);
        tokio::task::yield_now().await;
    }
    let mut bob = enter(&client, "bob").await;
    bob.send_text("still here").await.expect("connected");
    while heard(&mut bob).await != message("bob", "still here") {}

    let (mut seen, mut missed) = (0, 0);
    loop {
        let event = event(&mut slow).await;
        if event == message("bob", "still here") {
            break;
        }
        match event["missed"].as_u64() {
            Some(events) => missed += events,
            None => seen += 1,
        }
    }
    assert!(missed > 0, "saw all {seen}");
    assert_eq!(
        seen + missed,
        4 * BACKLOG as u64 + 1,
        "every message, and that bob came"
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_said_is_refused_with_a_reason() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    assert_eq!(post(&client, "ada", "  ").await, 422);
    assert_eq!(post(&client, "", "hello").await, 422);
    assert_eq!(post(&client, "ada", &"x".repeat(MAX_TEXT + 1)).await, 413);

    let mut ada = enter(&client, "ada").await;
    ada.send_text(" ").await.expect("connected");
    let problem = json!({"type": "problem", "text": "a message has a name and a text"});
    assert_eq!(heard(&mut ada).await, problem);
    ada.send_text("x".repeat(5 * MAX_TEXT))
        .await
        .expect("connected");
    assert_eq!(ada.recv_close().await.0, 1009);
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_room_answers_with_its_page() -> pinned::Result<()> {
    let app = app().await;
    let page = app.client().get("/rooms/lobby").send().await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.text().await.starts_with("<!doctype html>"));
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_room_is_forgotten_ten_minutes_after_the_last_listener_left() -> pinned::Result<()> {
    let app = app().await;
    let (client, rooms) = (app.client(), app.host::<Room>());
    let domain = app.worker().domain();
    let mut ada = enter(&client, "ada").await;
    post(&client, "bob", "hello").await;
    assert_eq!(heard(&mut ada).await, message("bob", "hello"));

    // A client that listens answers the pings by which the room knows that it is there.
    tokio::select! {
        event = heard(&mut ada) => panic!("nobody spoke: {event}"),
        () = domain.sleep(Duration::from_secs(3600)) => {}
    }
    assert_eq!(
        rooms
            .read("lobby")
            .await
            .expect("a live room")
            .history
            .len(),
        1
    );
    ada.close(1000, "bye").await;
    domain.sleep(Duration::from_secs(660)).await;
    assert!(rooms.is_empty());
    assert_eq!(
        rooms.read("lobby").await.expect("a new room").history.len(),
        0
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn stats_tell_how_many_are_here() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let mut ada = enter(&client, "ada").await;
    post(&client, "bob", "hello").await;
    heard(&mut ada).await;
    let stats = app.worker().stats();
    let row = &stats["instances"][0];
    assert_eq!((&row["here"], &row["remembered"]), (&json!(1), &json!(1)));
    app.shutdown().await
}
