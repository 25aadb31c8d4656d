//! WebSockets from instance to instance, on one worker and across two.

use axum::body::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use pinned::ws::{CloseFrame, Message, SocketError};
use pinned::{ClusterSocketRequest, MAX_CALL_DEPTH};

use super::feed::{Feed, heard};
use super::*;
use crate::app::settle;

/// Node `a` on the first worker, with a feed beside it and one on the other worker. The second is what tests call.
async fn fleet() -> (Exchange, [&'static str; 2]) {
    let fleet = Exchange::start(2).await;
    fleet.place_at("/feeds/far", 1);
    fleet.get("/nodes/a").send().await.assert_ok("a");
    // Only what lives here is called here.
    fleet
        .get("/feeds/near/plain")
        .send()
        .await
        .assert_ok("no socket");
    (fleet, ["/feeds/near", "/feeds/far"])
}

fn ask(fleet: &Exchange, path: String) -> ClusterSocketRequest {
    fleet.context("a").cluster().websocket(path)
}

#[tokio::test(start_paused = true)]
async fn messages_of_both_kinds_go_both_ways() {
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        let mut socket = ask(&fleet, format!("{feed}/echo"))
            .connect()
            .await
            .expect(feed);
        assert_eq!(socket.protocol(), None);
        socket.send_text("hello").await.expect("sent");
        assert_eq!(heard(&mut socket).await, "HELLO");
        socket.send(vec![1, 2, 3]).await.expect("sent");
        let back = socket.recv().await.expect("a message").expect("whole");
        assert_eq!(back, Message::Binary(Bytes::from_static(&[3, 2, 1])));
        // As a sink and a stream, and larger than what is under way at a time.
        let large = "x".repeat(200_000);
        let (mut sender, mut receiver) = socket.split();
        let (sent, received) = tokio::join!(
            SinkExt::send(&mut sender, Message::text(large.clone())),
            receiver.next()
        );
        sent.expect("sent");
        let received = received.expect("a message").expect("whole");
        assert_eq!(received, Message::text(large.to_uppercase()));
    }
    let remote = fleet.header("/feeds/far/echo", "pinboard-from");
    assert_eq!(remote.as_deref(), Some("/nodes/a"));
    assert_eq!(fleet.header("/feeds/near/echo", "pinboard-from"), None);
}

#[tokio::test(start_paused = true)]
async fn the_target_knows_who_asks_and_for_what() {
    // W14.1, W14.3, W14.4
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        let mut socket = ask(&fleet, format!("{feed}/who?a=1"))
            .query(&[("b", "2 3")])
            .header("x-mine", "kept")
            .header("pinboard-from", "/nodes/eve")
            .header("Pinboard-Chain", "/nodes/eve exclusive")
            .header("sec-websocket-protocol", "v3")
            .header("sec-websocket-extensions", "permessage-deflate")
            .protocols(["v1", "V2", "v2"])
            .connect()
            .await
            .expect(feed);
        assert_eq!(socket.protocol(), Some("v2"));
        assert_eq!(
            heard(&mut socket).await,
            r#"/nodes/a at 1; ["v1", "V2", "v2"]; Some("a=1&b=2+3"); Some("kept"); 0 private; Some("v2")"#
        );
        assert_eq!(heard(&mut socket).await, "closed 1000 ");
        assert_eq!(heard(&mut socket).await, "the end");
    }
}

#[tokio::test(start_paused = true)]
async fn the_target_ends_a_socket_with_a_code() {
    let (fleet, feeds) = fleet().await;
    for (worker, feed) in feeds.into_iter().enumerate() {
        for (word, end) in [
            ("close", "closed 4001 as told"),
            ("end", "closed 1000 "),
            ("fail", "closed 1011 internal error"),
        ] {
            let mut socket = ask(&fleet, format!("{feed}/echo"))
                .connect()
                .await
                .expect(feed);
            socket.send_text(word).await.expect("sent");
            assert_eq!(heard(&mut socket).await, end);
            assert_eq!(heard(&mut socket).await, "the end");
            let sent = socket.send_text("more").await;
            assert!(matches!(sent, Err(SocketError::ServerLeft)), "{sent:?}");
            assert!(socket.is_closed());
        }
        // H6.8: its instance closes.
        let mut socket = ask(&fleet, format!("{feed}/echo"))
            .connect()
            .await
            .expect(feed);
        let id = feed.rsplit('/').next().expect("an id");
        let hosted = fleet.app(worker).worker.hosted::<Feed>().expect("hosted");
        hosted.abort(id);
        assert_eq!(heard(&mut socket).await, "closed 1012 instance closed");
        settle().await;
        assert_eq!(hosted.len(), 0);
        fleet.place_at(feed, worker);
        fleet
            .get(&format!("{feed}/plain"))
            .send()
            .await
            .assert_ok("no socket");
    }
}

#[tokio::test(start_paused = true)]
async fn the_caller_ends_a_socket_with_a_code() {
    let (fleet, feeds) = fleet().await;
    fleet.named("hear").open();
    for feed in feeds {
        let mut socket = ask(&fleet, format!("{feed}/deaf"))
            .connect()
            .await
            .expect(feed);
        socket.send_text("one").await.expect("sent");
        let frame = CloseFrame::new(4002, "enough");
        socket.close(Some(frame)).await.expect("sent");
        // The target gives the code back.
        assert_eq!(heard(&mut socket).await, "closed 4002 enough");
        assert_eq!(heard(&mut socket).await, "the end");
        let sent = socket.send_text("more").await;
        assert!(matches!(sent, Err(SocketError::Closed)), "{sent:?}");
        settle().await;
        assert_eq!(fleet.take_said(), [r#"1, closed Some("4002 enough")"#]);

        // Dropped, with something on its way.
        let socket = ask(&fleet, format!("{feed}/deaf"))
            .connect()
            .await
            .expect(feed);
        socket.send_text("one").await.expect("sent");
        drop(socket);
        settle().await;
        assert_eq!(fleet.take_said(), [r#"1, closed Some("1001 ")"#]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_ends_with_the_instance_that_opened_it() {
    // H11.3: the last step of the close.
    let (fleet, feeds) = fleet().await;
    fleet.named("hear").open();
    for feed in feeds {
        fleet.get("/nodes/a").send().await.assert_ok("a");
        let mut socket = ask(&fleet, format!("{feed}/deaf"))
            .connect()
            .await
            .expect(feed);
        let hosted = fleet.app(0).worker.hosted::<Node>().expect("hosted");
        hosted.abort("a");
        let said = heard(&mut socket).await;
        assert_eq!(said, "the host has ended the socket");
        assert_eq!(heard(&mut socket).await, "the end");
        settle().await;
        assert_eq!(hosted.len(), 0);
        assert_eq!(
            fleet.take_said(),
            [r#"0, closed Some("1001 instance closed")"#]
        );
        // Too late for another.
        let late = ask(&fleet, format!("{feed}/deaf")).connect().await;
        if let Ok(mut socket) = late {
            assert_eq!(heard(&mut socket).await, "the host has ended the socket");
        }
        settle().await;
        fleet.take_said();
        fleet.place("a", 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_the_goodbye_and_no_longer_than_a_second() {
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        fleet.get("/nodes/a").send().await.assert_ok("a");
        let _socket = ask(&fleet, format!("{feed}/deaf"))
            .connect()
            .await
            .expect(feed);
        let hosted = fleet.app(0).worker.hosted::<Node>().expect("hosted");
        hosted.abort("a");
        pass(900).await;
        assert_eq!(hosted.len(), 1, "the target has not answered the close");
        pass(200).await;
        assert_eq!(hosted.len(), 0);
        fleet.place("a", 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_nobody_reads_keeps_no_instance_awake() {
    // H8.3: it is not the instance's client.
    let (fleet, _) = fleet().await;
    let hosted = fleet.app(0).worker.hosted::<Node>().expect("hosted");
    let _socket = ask(&fleet, "/feeds/far/echo".into())
        .connect()
        .await
        .expect("open");
    pass(10 * 60 * 1000).await;
    assert_eq!(hosted.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_takes_nothing_holds_its_sender() {
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        let path = format!("{feed}/deaf");
        let socket = ask(&fleet, path).connect().await.expect(feed);
        let mut sent = 0;
        let chunk = vec![7; 4096];
        // What is under way is bounded, so this comes to an end.
        while let Ok(outcome) = fleet
            .app(0)
            .worker
            .domain()
            .timeout(Duration::from_secs(1), socket.send(chunk.clone()))
            .await
        {
            outcome.expect("sent");
            sent += 1;
            assert!(sent < 100, "nothing holds the sender");
        }
        fleet.named("hear").open();
        socket.send(chunk).await.expect("sent in the end");
        drop(socket);
        settle().await;
        let said = fleet.take_said().pop().expect("it has ended");
        let heard = said.split(',').next().and_then(|count| count.parse().ok());
        // The one that was given up went out whole or not at all.
        assert!(
            heard.is_some_and(|heard: i32| heard - sent == 1 || heard - sent == 2),
            "{said}, {sent}"
        );
        fleet.close_gate("hear");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_grants_no_socket_is_an_error_that_says_so() {
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        let refused = async |path: &str| match ask(&fleet, format!("{feed}{path}")).connect().await
        {
            Err(ClusterError::SocketRefused(refused)) => *refused,
            other => panic!("{path}: {other:?}"),
        };
        let answer = refused("/refuses").await;
        assert_eq!(answer.status, StatusCode::CONFLICT);
        assert_eq!(answer.headers["x-why"], "full");
        assert_eq!(&*answer.body, b"taken");
        assert_eq!(
            ClusterError::SocketRefused(Box::new(answer)).to_string(),
            "the socket was refused: 409 taken"
        );
        assert_eq!(refused("/nowhere").await.status, StatusCode::NOT_FOUND);
        assert_eq!(refused("/plain").await.status, StatusCode::OK);
        // The request is wrong before anything is sent.
        for asked in [
            ask(&fleet, format!("{feed}/a b")),
            ask(&fleet, format!("{feed}/echo")).protocols(["a b"]),
            ask(&fleet, format!("{feed}/echo")).header("x y", "1"),
        ] {
            let answer = asked.connect().await;
            assert!(
                matches!(answer, Err(ClusterError::InvalidRequest(_))),
                "{answer:?}"
            );
        }
        let late = ask(&fleet, format!("{feed}/slow")).timeout(Duration::from_secs(2));
        let answer = late.connect().await;
        assert!(
            matches!(answer, Err(ClusterError::TimedOut(_))),
            "{answer:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_is_as_deep_as_a_call() {
    // W14.3
    let (fleet, feeds) = fleet().await;
    let app = fleet.app(0);
    for feed in feeds {
        let opens = async |depth: u32| {
            let claims = Claims::new("session-1", app.worker.domain().now())
                .with_caller("/far/away", u64::from(depth));
            let token = mint(app.worker.secret(), &claims);
            let call = app.get(&format!("/nodes/a/opens{feed}/who"));
            call.header("pinboard-attestation", token).text().await
        };
        let said = opens(MAX_CALL_DEPTH - 1).await;
        assert!(said.starts_with("/nodes/a at 50;"), "{said}");
        let said = opens(MAX_CALL_DEPTH).await;
        assert_eq!(
            said,
            "cluster calls may be 50 deep; this one would be deeper"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_done_over_an_open_socket_is_no_part_of_a_chain() {
    // The handshake is a call; who waits for what after it, nobody can know.
    let (fleet, feeds) = fleet().await;
    for feed in feeds {
        let path = format!("/nodes/a/opens-first{feed}/calls-back");
        fleet.get(&path).send().await.assert_ok("200 a");
        fleet.close_gate("called");
    }
}
