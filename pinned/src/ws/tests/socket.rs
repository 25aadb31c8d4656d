use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio_tungstenite::tungstenite::{
    Message as ClientMessage, protocol::frame::coding::CloseCode,
};

use super::{ask, client_over, closed_with, open, parts, say, settle, upgrade_request};
use crate::domain::Domain;
use crate::ws::{
    CloseFrame, InProcessUpgrade, Message, SocketControl, SocketError, WebSocket,
    WebSocketReceiver, WebSocketSender, close_code,
};

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways() {
    let (_control, mut socket, mut client) = open().await;
    say(&mut client, "hello").await;
    assert_eq!(socket.recv().await.unwrap().unwrap(), "hello".into());
    socket.send_text("hi").await.unwrap();
    socket.send(vec![1, 2, 3]).await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), "hi".into());
    assert_eq!(
        client.next().await.unwrap().unwrap(),
        ClientMessage::binary(vec![1, 2, 3])
    );
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_and_shown() {
    let (_control, mut socket, mut client) = open().await;
    let ping = ClientMessage::Ping(Bytes::from_static(b"there?"));
    client.send(ping).await.unwrap();
    let shown = socket.recv().await.unwrap().unwrap();
    assert_eq!(shown, Message::Ping(Bytes::from_static(b"there?")));
    // The answer goes out with the next look at the socket.
    assert!(socket.recv().now_or_never().is_none());
    let pong = ClientMessage::Pong(Bytes::from_static(b"there?"));
    assert_eq!(client.next().await.unwrap().unwrap(), pong);
}

#[tokio::test(start_paused = true)]
async fn a_receive_that_is_dropped_loses_nothing() {
    let (_control, mut socket, mut client) = open().await;
    assert!(socket.recv().now_or_never().is_none());
    let waits = tokio::time::timeout(Duration::from_secs(1), socket.recv());
    assert!(waits.await.is_err());
    say(&mut client, "kept").await;
    assert_eq!(socket.recv().await.unwrap().unwrap(), "kept".into());
}

/// A connection that takes bytes only after another task has run, and wakes its writer at once until then.
struct Polite {
    stream: DuplexStream,
    go: Arc<AtomicBool>,
}

impl AsyncRead for Polite {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Polite {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.go.load(Ordering::Relaxed) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_wakes_at_once_does_not_keep_other_tasks_from_running() {
    let (connection, stream) = tokio::io::duplex(super::ROOM);
    let go = Arc::new(AtomicBool::new(false));
    let polite = Polite {
        stream,
        go: go.clone(),
    };
    let mut parts = parts(upgrade_request().extension(InProcessUpgrade::new(polite)));
    let (control, _answer) = SocketControl::open(&mut parts, Domain::real()).unwrap();
    let socket = control.upgrade().accept().await.unwrap();
    tokio::spawn(async move { go.store(true, Ordering::Relaxed) });
    socket.send_text("after you").await.unwrap();
    let mut client = client_over(connection).await;
    assert_eq!(client.next().await.unwrap().unwrap(), "after you".into());
}

#[tokio::test(start_paused = true)]
async fn both_halves_work_from_tasks_of_their_own() {
    let (_control, socket, mut client) = open().await;
    let (sender, mut receiver) = socket.split();
    let reads = tokio::spawn(async move { receiver.recv().await.unwrap().unwrap() });
    settle().await;
    let again = sender.clone();
    tokio::spawn(async move { sender.send_text("one").await.unwrap() });
    assert_eq!(client.next().await.unwrap().unwrap(), "one".into());
    tokio::spawn(async move { again.send_text("two").await.unwrap() });
    assert_eq!(client.next().await.unwrap().unwrap(), "two".into());
    say(&mut client, "three").await;
    assert_eq!(reads.await.unwrap(), "three".into());
}

#[tokio::test(start_paused = true)]
async fn several_senders_wait_for_a_slow_client_and_all_go_on() {
    let (_control, socket, mut client) = open().await;
    let text = "x".repeat(super::ROOM);
    let (sender, _receiver) = socket.split();
    let sends: Vec<_> = (0..8)
        .map(|_| {
            let (sender, text) = (sender.clone(), text.clone());
            tokio::spawn(async move { sender.send(text).await })
        })
        .collect();
    settle().await;
    assert!(sends.iter().any(|send| !send.is_finished()));
    for _ in 0..8 {
        assert_eq!(client.next().await.unwrap().unwrap().len(), super::ROOM);
    }
    for send in sends {
        send.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_dropped_never_cuts_its_message() {
    let (_control, socket, mut client) = open().await;
    let long = "x".repeat(3 * super::ROOM);
    assert!(socket.send_text(long.as_str()).now_or_never().is_none());
    let sends = tokio::spawn(async move { socket.send_text("next").await });
    assert_eq!(client.next().await.unwrap().unwrap(), long.into());
    assert_eq!(client.next().await.unwrap().unwrap(), "next".into());
    sends.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_clients_close_is_answered_and_is_the_last_message() {
    let (_control, mut socket, mut client) = open().await;
    client.close(None).await.unwrap();
    let message = socket.recv().await.unwrap().unwrap();
    assert_eq!(message, Message::Close(None));
    assert!(socket.is_closed());
    // The answer did not wait for another look.
    assert!(matches!(
        client.next().await,
        Some(Ok(ClientMessage::Close(None)))
    ));
    assert!(socket.recv().await.is_none());
    assert!(socket.recv().await.is_none());
    let sent = socket.send_text("late").await;
    assert!(sent.unwrap_err().is_client_left());
}

#[tokio::test(start_paused = true)]
async fn sending_after_the_own_close_is_an_error_and_closing_again_does_nothing() {
    let (_control, mut socket, mut client) = open().await;
    let frame = CloseFrame::new(4001, "done");
    socket.close(Some(frame)).await.unwrap();
    assert!(socket.is_closed());
    let sent = socket.send_text("late").await;
    assert!(matches!(sent, Err(SocketError::Closed)));
    socket.close(None).await.unwrap();
    assert_eq!(closed_with(&mut client).await, (4001, "done".into()));
    // The client's answer can still be received.
    assert!(client.next().now_or_never().is_none());
    assert!(matches!(
        socket.recv().await,
        Some(Ok(Message::Close(Some(CloseFrame { code: 4001, .. }))))
    ));
    assert!(socket.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_drops_its_connection_has_left() {
    let (_control, mut socket, client) = open().await;
    drop(client);
    assert!(socket.recv().await.unwrap().unwrap_err().is_client_left());
    assert!(socket.recv().await.is_none());
    let sent = socket.send_text("late").await;
    assert!(sent.unwrap_err().is_client_left());
    socket.close(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_closes_with_1009() {
    let asked = ask(upgrade_request());
    let upgrade = asked.control.upgrade().max_message_size(10);
    let mut socket = upgrade.accept().await.unwrap();
    let mut client = client_over(asked.connection).await;
    say(&mut client, "0123456789").await;
    say(&mut client, "0123456789a").await;
    assert!(socket.recv().await.unwrap().is_ok());
    let error = socket.recv().await.unwrap().unwrap_err();
    assert!(matches!(
        error,
        SocketError::TooLarge {
            size: 11,
            limit: 10
        }
    ));
    assert!(socket.recv().await.is_none());
    assert_eq!(
        closed_with(&mut client).await.0,
        close_code::MESSAGE_TOO_BIG
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_frame_closes_with_1002_and_bad_text_with_1007() {
    for (bytes, code) in [
        // A text frame that is not masked.
        (&b"\x81\x01x"[..], close_code::PROTOCOL_ERROR),
        // A masked text frame with a byte that no UTF-8 has.
        (&b"\x81\x81\0\0\0\0\xff"[..], close_code::INVALID_PAYLOAD),
    ] {
        let (_control, mut socket, mut client) = open().await;
        client.get_mut().write_all(bytes).await.unwrap();
        let error = socket.recv().await.unwrap().unwrap_err();
        assert!(matches!(error, SocketError::Protocol(_)));
        assert!(socket.recv().await.is_none());
        assert_eq!(closed_with(&mut client).await.0, code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_frame_that_is_too_long_to_send_is_an_error() {
    let (_control, socket, _client) = open().await;
    for message in [
        Message::Ping(Bytes::from(vec![0; 126])),
        Message::Pong(Bytes::from(vec![0; 126])),
    ] {
        let error = socket.send(message).await.unwrap_err();
        assert!(matches!(
            error,
            SocketError::TooLarge {
                size: 126,
                limit: 125
            }
        ));
    }
    assert!(!socket.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_long_reason_is_cut_at_the_end_of_a_character() {
    // H6.10
    for (reason, sent) in [
        ("x".repeat(123), "x".repeat(123)),
        ("x".repeat(124), "x".repeat(123)),
        ("ä".repeat(62), "ä".repeat(61)),
        (
            format!("x{}", "𝄞".repeat(31)),
            format!("x{}", "𝄞".repeat(30)),
        ),
    ] {
        let (_control, socket, mut client) = open().await;
        let frame = CloseFrame::new(close_code::NORMAL, reason);
        socket.close(Some(frame)).await.unwrap();
        assert_eq!(closed_with(&mut client).await.1, sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_that_may_not_be_sent_goes_out_as_1011() {
    for code in [0, 999, 1005, 1006, 1015, 2000, 5000] {
        let (_control, socket, mut client) = open().await;
        socket.close(Some(CloseFrame::new(code, ""))).await.unwrap();
        assert_eq!(closed_with(&mut client).await.0, 1011);
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_is_a_stream_and_a_sink() {
    let (_control, socket, client) = open().await;
    let echo = tokio::spawn(async move {
        let (mut sink, stream) = socket.split();
        let texts = stream.filter(|item| {
            let text = matches!(item, Ok(Message::Text(_)));
            async move { text }
        });
        texts.forward(&mut sink).await.unwrap();
    });
    let (mut send, mut recv) = client.split();
    let sends = tokio::spawn(async move {
        for n in 0..200 {
            let text = format!("{n}:{}", "x".repeat(100));
            send.send(text.into()).await.unwrap();
        }
        send.send(ClientMessage::Close(None)).await.unwrap();
    });
    for n in 0..200 {
        let echoed = recv.next().await.unwrap().unwrap();
        assert!(echoed.to_text().unwrap().starts_with(&format!("{n}:")));
    }
    assert!(matches!(
        recv.next().await,
        Some(Ok(ClientMessage::Close(None)))
    ));
    sends.await.unwrap();
    echo.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clients_close_code_is_told() {
    let (_control, mut socket, mut client) = open().await;
    let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: CloseCode::Library(4321),
        reason: "bye".into(),
    };
    client.close(Some(frame)).await.unwrap();
    let message = socket.recv().await.unwrap().unwrap();
    assert_eq!(message, Message::Close(Some(CloseFrame::new(4321, "bye"))));
}

#[test]
fn sockets_may_be_shared_and_sent_between_threads() {
    fn check<T: Send + Sync + Unpin + 'static>() {}
    check::<WebSocket>();
    check::<WebSocketSender>();
    check::<WebSocketReceiver>();
    check::<SocketError>();
}
