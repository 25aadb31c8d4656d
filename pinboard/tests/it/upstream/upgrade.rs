//! Connections that become something else (P5.3).

use http::StatusCode;
use http_body::Body as _;
use pinboard::upstream::RequestHead;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::rig::{Peer, Rig, get, none, text};

fn upgrading() -> RequestHead {
    let mut head = get("/");
    head.upgrade = Some(b"websocket".to_vec());
    head
}

#[tokio::test(start_paused = true)]
async fn after_a_101_the_connection_is_the_callers() {
    let mut rig = Rig::new();
    let (reply, mut peer) = tokio::join!(rig.backend.send(0, upgrading(), none()), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        let head = peer.head().await;
        assert!(
            head.ends_with("\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
            "{head}"
        );
        peer.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\nhello")
            .await;
        peer
    });
    let reply = reply.expect("a reply");
    assert_eq!(reply.status, StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(reply.headers["upgrade"], "websocket");
    assert!(reply.body.is_end_stream());
    let mut upgraded = reply.upgraded.expect("a connection");
    assert_eq!(upgraded.read, "hello");

    // What came with the head is read first, in parts if need be.
    let mut read = [0; 3];
    upgraded.read_exact(&mut read).await.expect("open");
    assert_eq!(&read, b"hel");
    peer.write(", you").await;
    let mut rest = [0; 7];
    upgraded.read_exact(&mut rest).await.expect("open");
    assert_eq!(&rest, b"lo, you");

    upgraded.write_all(b"bye").await.expect("open");
    peer.expect("bye").await;
    drop(upgraded);
    assert_eq!((peer.closed().await, rig.backend.idle()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_to_upgrade_is_a_response_like_any_other() {
    let mut rig = Rig::new();
    let (reply, _peer) = tokio::join!(rig.backend.send(0, upgrading(), none()), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
            .await;
        peer
    });
    let reply = reply.expect("a reply");
    assert!(reply.upgraded.is_none());
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    assert_eq!(text(reply.body).await, "no");
    assert_eq!(rig.backend.idle(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_also_takes_trailers_says_both() {
    let mut rig = Rig::new();
    let mut head = upgrading();
    head.accepts_trailers = true;
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, none()), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        let head = peer.head().await;
        let lines = "\r\nconnection: upgrade, te\r\nupgrade: websocket\r\nte: trailers\r\n\r\n";
        assert!(head.ends_with(lines), "{head}");
        peer.write("HTTP/1.1 101 Switching Protocols\r\n\r\n").await;
    });
    assert!(
        reply
            .expect("a reply")
            .upgraded
            .expect("a connection")
            .read
            .is_empty()
    );
}
