use std::time::Duration;

use futures_util::StreamExt;
use tokio::{io::AsyncWriteExt, time::Instant};
use tokio_tungstenite::tungstenite::Message as ClientMessage;

use super::{ask, client_over, open, say, settle, upgrade_request};
use crate::ws::{DEFAULT_PING_INTERVAL, DEFAULT_PING_TIMEOUT};

const BOTH: Duration = Duration::from_secs(40);

#[tokio::test(start_paused = true)]
async fn a_client_that_vanished_is_noticed_after_the_ping_and_its_time() {
    let (_control, mut socket, client) = open().await;
    let start = Instant::now();
    assert!(socket.recv().await.unwrap().unwrap_err().is_client_left());
    assert_eq!(
        start.elapsed(),
        DEFAULT_PING_INTERVAL + DEFAULT_PING_TIMEOUT
    );
    assert!(socket.recv().await.is_none());
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_stays_and_its_answers_are_not_shown() {
    let (_control, mut socket, mut client) = open().await;
    let reads = tokio::spawn(async move { socket.recv().await.unwrap().unwrap() });
    let start = Instant::now();
    for n in 1..=5 {
        // Answered by the client's library with its next look.
        assert!(client.next().await.unwrap().unwrap().is_ping());
        assert_eq!(start.elapsed(), n * DEFAULT_PING_INTERVAL);
    }
    say(&mut client, "still here").await;
    assert_eq!(reads.await.unwrap(), "still here".into());
}

#[tokio::test(start_paused = true)]
async fn silence_is_measured_across_receives_that_are_dropped() {
    let (_control, mut socket, _client) = open().await;
    let start = Instant::now();
    loop {
        let waits = tokio::time::timeout(Duration::from_secs(3), socket.recv());
        if let Ok(item) = waits.await {
            assert!(item.unwrap().unwrap_err().is_client_left());
            break;
        }
    }
    assert_eq!(start.elapsed(), BOTH);
}

#[tokio::test(start_paused = true)]
async fn a_busy_handler_does_not_take_its_own_silence_for_the_clients() {
    let (_control, mut socket, mut client) = open().await;
    assert!(futures_util::FutureExt::now_or_never(socket.recv()).is_none());
    say(&mut client, "early").await;
    tokio::time::sleep(3 * BOTH).await;
    assert_eq!(socket.recv().await.unwrap().unwrap(), "early".into());
    // And then the full time counts from here.
    let start = Instant::now();
    assert!(socket.recv().await.unwrap().unwrap_err().is_client_left());
    assert_eq!(start.elapsed(), BOTH);
}

#[tokio::test(start_paused = true)]
async fn a_long_message_on_a_slow_line_is_not_silence() {
    let (_control, mut socket, mut client) = open().await;
    let reads = tokio::spawn(async move { socket.recv().await.unwrap().unwrap() });
    let line = client.get_mut();
    line.write_all(b"\x82\x8a\0\0\0\0").await.unwrap();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(15)).await;
        line.write_all(b"x").await.unwrap();
    }
    assert_eq!(reads.await.unwrap(), vec![b'x'; 10].into());
}

#[tokio::test(start_paused = true)]
async fn a_send_that_waits_for_a_vanished_client_ends_with_it() {
    let (_control, socket, _client) = open().await;
    let (sender, mut receiver) = socket.split();
    let sends = tokio::spawn(async move { sender.send("x".repeat(4 * super::ROOM)).await });
    settle().await;
    assert!(receiver.recv().await.unwrap().unwrap_err().is_client_left());
    assert!(sends.await.unwrap().unwrap_err().is_client_left());
}

#[tokio::test(start_paused = true)]
async fn interval_and_time_can_be_set_and_turned_off() {
    let asked = ask(upgrade_request());
    let upgrade = asked.control.upgrade();
    let upgrade = upgrade
        .ping_interval(Duration::from_secs(1))
        .ping_timeout(Duration::from_secs(2));
    let mut socket = upgrade.accept().await.unwrap();
    let start = Instant::now();
    assert!(socket.recv().await.unwrap().unwrap_err().is_client_left());
    assert_eq!(start.elapsed(), Duration::from_secs(3));

    let asked = ask(upgrade_request());
    let upgrade = asked.control.upgrade().ping_interval(Duration::MAX);
    let mut socket = upgrade.accept().await.unwrap();
    let mut client = client_over(asked.connection).await;
    let day = Duration::from_secs(86_400);
    assert!(tokio::time::timeout(day, socket.recv()).await.is_err());
    socket.send_text("good morning").await.unwrap();
    let first: ClientMessage = client.next().await.unwrap().unwrap();
    assert_eq!(first, "good morning".into());
}
