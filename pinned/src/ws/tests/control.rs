use std::time::Duration;

use axum::response::IntoResponse;
use futures_util::{FutureExt, StreamExt};
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::{io::AsyncReadExt, time::Instant};

use super::{ROOM, ask, client_over, closed_with, open, say, settle, upgrade_request};
use crate::ws::{CloseFrame, FromUpgrade, SocketError, WebSocket, WebSocketUpgrade, close_code};

#[tokio::test]
async fn a_refusal_of_the_host_is_the_answer_and_the_first_answer_wins() {
    let asked = ask(upgrade_request());
    let upgrade = asked.control.upgrade();
    assert!(!asked.control.is_accepted());
    let unavailable = StatusCode::SERVICE_UNAVAILABLE.into_response();
    assert!(asked.control.refuse(unavailable));
    assert!(!asked.control.refuse(StatusCode::OK.into_response()));
    let accepted = upgrade.accept().await;
    assert!(matches!(accepted, Err(SocketError::EndedByHost)));
    assert!(!asked.control.is_accepted());
    assert_eq!(asked.answer.await.unwrap().status(), 503);
}

#[tokio::test]
async fn a_refusal_of_the_handler_is_the_answer() {
    let asked = ask(upgrade_request());
    let full = (StatusCode::CONFLICT, "the room is full");
    asked.control.upgrade().refuse(full);
    let unavailable = StatusCode::SERVICE_UNAVAILABLE.into_response();
    assert!(!asked.control.refuse(unavailable));
    let answer = asked.answer.await.unwrap();
    assert_eq!(answer.status(), 409);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "the room is full");
}

#[tokio::test]
async fn a_dropped_upgrade_leaves_the_answer_to_the_host() {
    // H6.7: a handler that failed before it accepted is a 500.
    let mut asked = ask(upgrade_request());
    drop(asked.control.upgrade());
    assert!((&mut asked.answer).now_or_never().is_none());
    let failed = StatusCode::INTERNAL_SERVER_ERROR.into_response();
    assert!(asked.control.refuse(failed));
    assert_eq!(asked.answer.await.unwrap().status(), 500);
}

#[tokio::test]
async fn an_upgrade_that_nobody_answers_is_403_with_an_empty_body() {
    for end in [false, true] {
        let asked = ask(upgrade_request());
        if end {
            asked.control.end(close_code::POLICY_VIOLATION, "").await;
        }
        drop(asked.control);
        let answer = asked.answer.await.unwrap();
        assert_eq!(answer.status(), 403);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.is_empty());
    }
}

#[tokio::test]
async fn accepting_for_a_client_that_did_not_wait_is_client_left() {
    let asked = ask(upgrade_request());
    drop(asked.answer);
    let accepted = asked.control.upgrade().accept().await;
    assert!(accepted.unwrap_err().is_client_left());
    assert!(!asked.control.is_accepted());
    asked.control.end(close_code::NORMAL, "").await;
}

#[tokio::test(start_paused = true)]
async fn what_the_authorizer_accepted_the_handler_gets() {
    // H2.13
    let asked = ask(upgrade_request().header("sec-websocket-protocol", "a, b"));
    let upgrade = asked.control.upgrade().protocols(["a"]);
    let mut authorizers = upgrade.accept().await.unwrap();
    let mut client = client_over(asked.connection).await;
    say(&mut client, "my token").await;
    assert_eq!(
        authorizers.recv().await.unwrap().unwrap(),
        "my token".into()
    );
    drop(authorizers);

    assert!(asked.control.is_accepted());
    let upgrade = asked.control.upgrade().protocols(["b"]);
    let upgrade = upgrade.max_message_size(5);
    let mut socket = WebSocket::from_upgrade(upgrade).await.unwrap();
    assert_eq!(socket.protocol(), Some("a"));
    say(&mut client, "small").await;
    say(&mut client, "too large").await;
    assert!(socket.recv().await.unwrap().is_ok());
    // The handler's own limits hold.
    assert!(socket.recv().await.unwrap().is_err());
    assert_eq!(asked.answer.await.unwrap().status(), 101);
}

#[tokio::test(start_paused = true)]
async fn refusing_what_the_authorizer_accepted_closes_it() {
    let (control, _authorizers, mut client) = open().await;
    let upgrade = WebSocketUpgrade::from_upgrade(control.upgrade()).await;
    upgrade.unwrap().refuse(StatusCode::FORBIDDEN);
    assert_eq!(
        closed_with(&mut client).await.0,
        close_code::POLICY_VIOLATION
    );
}

#[tokio::test(start_paused = true)]
async fn a_denial_with_a_payload_is_a_text_frame_and_then_the_close() {
    // H2.9
    let (control, socket, mut client) = open().await;
    drop(socket);
    let payload = r#"{"code":"full"}"#;
    control.send_text(payload.to_owned()).await.unwrap();
    let ends = tokio::spawn(async move { control.end(1008, "the room is full").await });
    assert_eq!(client.next().await.unwrap().unwrap(), payload.into());
    let close = closed_with(&mut client).await;
    assert_eq!(close, (1008, "the room is full".into()));
    let start = Instant::now();
    assert!(client.next().await.is_none());
    ends.await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_payload_needs_an_accepted_socket_and_a_client_that_takes_it() {
    // H2.10, H2.11
    let asked = ask(upgrade_request());
    let sent = asked.control.send_text("{}".to_owned()).await;
    assert!(matches!(sent, Err(SocketError::NotAccepted)));

    let (control, _socket, client) = open().await;
    drop(client);
    let sent = control.send_text("{}".to_owned()).await;
    assert!(sent.unwrap_err().is_client_left());

    let (control, _socket, _client) = open().await;
    let sent = control.send_text("x".repeat(4 * ROOM)).await;
    assert!(sent.unwrap_err().is_client_left());
}

#[tokio::test(start_paused = true)]
async fn ending_wakes_a_handler_that_waits_to_receive() {
    // H6.8
    let (control, mut socket, mut client) = open().await;
    let handler = tokio::spawn(async move {
        let error = socket.recv().await.unwrap().unwrap_err();
        assert!(error.is_ended_by_host());
        // Told once, so that a loop that goes on after errors ends.
        assert!(socket.recv().await.is_none());
        assert!(
            socket
                .send_text("late")
                .await
                .unwrap_err()
                .is_ended_by_host()
        );
        assert!(socket.is_closed());
        socket.close(None).await.unwrap();
    });
    settle().await;
    tokio::join!(control.end(close_code::SERVICE_RESTART, "evicted"), async {
        let close = closed_with(&mut client).await;
        assert_eq!(close, (1012, "evicted".into()));
        assert!(client.next().await.is_none());
    });
    handler.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ending_frees_a_send_that_a_stalled_client_blocks_and_is_bounded() {
    let (control, socket, _client) = open().await;
    let sends = tokio::spawn(async move { socket.send_text("x".repeat(4 * ROOM)).await });
    settle().await;
    assert!(!sends.is_finished());
    let start = Instant::now();
    control.end(close_code::SERVICE_RESTART, "").await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert!(sends.await.unwrap().unwrap_err().is_ended_by_host());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_the_close_is_given_a_second() {
    let (control, _socket, mut client) = open().await;
    let start = Instant::now();
    control.end(close_code::NORMAL, "").await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert_eq!(closed_with(&mut client).await.0, 1000);
    // And once more is nothing.
    control.end(close_code::INTERNAL_ERROR, "").await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_gone_leaves_the_socket_to_the_host() {
    let (control, socket, mut client) = open().await;
    let handler = tokio::spawn(async move {
        let mut socket = socket;
        socket.recv().await
    });
    settle().await;
    handler.abort();
    assert!(handler.await.unwrap_err().is_cancelled());
    assert!(client.next().now_or_never().is_none());
    tokio::join!(control.end(close_code::NORMAL, ""), async {
        assert_eq!(closed_with(&mut client).await.0, 1000);
        assert!(client.next().await.is_none());
    });
}

#[tokio::test(start_paused = true)]
async fn ending_after_the_handlers_close_sends_no_second_frame() {
    let (control, socket, mut client) = open().await;
    let frame = CloseFrame::new(4000, "mine");
    socket.close(Some(frame)).await.unwrap();
    tokio::join!(control.end(close_code::NORMAL, ""), async {
        assert_eq!(closed_with(&mut client).await, (4000, "mine".into()));
        assert!(client.next().await.is_none());
    });
}

#[tokio::test(start_paused = true)]
async fn ending_answers_a_close_that_the_handler_has_not_read() {
    let (control, _socket, mut client) = open().await;
    client.close(None).await.unwrap();
    let start = Instant::now();
    tokio::join!(control.end(close_code::NORMAL, ""), async {
        assert!(client.next().await.unwrap().unwrap().is_close());
        assert!(client.next().await.is_none());
    });
    assert!(start.elapsed() < Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn the_last_of_all_handles_still_says_goodbye() {
    let (control, socket, mut client) = open().await;
    drop((control, socket));
    assert_eq!(closed_with(&mut client).await.0, close_code::GOING_AWAY);
}

#[tokio::test(start_paused = true)]
async fn unread_bytes_do_not_keep_a_broken_client_from_its_close_frame() {
    let asked = ask(upgrade_request());
    let upgrade = asked.control.upgrade().max_message_size(1);
    let mut socket = upgrade.accept().await.unwrap();
    let (mut from, mut to) = tokio::io::split(asked.connection);
    let floods = tokio::spawn(async move {
        let mut frame = b"\x82\xfe\xff\xff\0\0\0\0".to_vec();
        frame.resize(frame.len() + 0xffff, 0);
        tokio::io::AsyncWriteExt::write_all(&mut to, &frame).await
    });
    assert!(socket.recv().await.unwrap().is_err());
    let ends = tokio::spawn(async move { asked.control.end(close_code::NORMAL, "").await });
    floods.await.unwrap().unwrap();
    let mut received = [0; 4];
    from.read_exact(&mut received).await.unwrap();
    // A close frame with 1009.
    assert_eq!(received[0], 0x88);
    assert_eq!(received[2..], 1009_u16.to_be_bytes());
    ends.await.unwrap();
}
