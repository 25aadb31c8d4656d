//! Bodies of requests, and responses that come before their end.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use pinboard::upstream::{ExchangeErrorKind, Framing};

use super::rig::{Peer, Rig, broken, data, fed, full, get, none, request, text};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test(start_paused = true)]
async fn a_head_is_sent_as_it_is_with_the_lines_of_the_framing() {
    for (framing, lines) in [
        (Framing::None, ""),
        (Framing::Length(0), "content-length: 0\r\n"),
        (Framing::Length(5), "content-length: 5\r\n"),
        (Framing::Chunked, "transfer-encoding: chunked\r\n"),
    ] {
        let mut rig = Rig::new();
        let head = request("POST", "/a%2Fb//?q=%20", framing);
        let (reply, ()) = tokio::join!(rig.backend.send(0, head, full("hello")), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            let expected =
                format!("POST /a%2Fb//?q=%20 HTTP/1.1\r\nhost: rooms.example\r\n{lines}\r\n");
            assert_eq!(peer.head().await, expected);
            match framing {
                Framing::Length(5) => peer.expect("hello").await,
                Framing::Chunked => peer.expect("5\r\nhello\r\n0\r\n\r\n").await,
                _ => assert!(peer.is_silent()),
            }
            peer.write(OK).await;
        });
        assert_eq!(text(reply.expect("a reply").body).await, "ok");
        assert_eq!(rig.backend.idle(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_sent_as_it_comes() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    let head = request("POST", "/", Framing::Chunked);
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        for text in ["a", "", "bc"] {
            assert!(peer.is_silent());
            feeder.data(text);
            if !text.is_empty() {
                // Its end of line too: nobody has to wait for the next chunk to know that this one is over.
                peer.expect(&format!("{:x}\r\n{text}\r\n", text.len()))
                    .await;
            }
        }
        drop(feeder);
        peer.expect("0\r\n\r\n").await;
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
    assert_eq!(rig.backend.idle(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_another_length_than_announced_is_an_error() {
    for texts in [
        &["hell"][..],
        &["hello", "!"],
        &["hello!"],
        &["he", "llo!"],
        &[],
    ] {
        let mut rig = Rig::new();
        let (feeder, body) = fed();
        texts.iter().for_each(|text| feeder.data(text));
        drop(feeder);
        let head = request("POST", "/", Framing::Length(5));
        let (reply, came) = tokio::join!(rig.backend.send(0, head, body), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            // The head may not have been written at all.
            peer.closed().await
        });
        let error = reply.expect_err("a body that is no good");
        assert_eq!(error.kind, ExchangeErrorKind::Body, "{texts:?}");
        assert_eq!(error.may_have_reached, came > 0, "{texts:?}");
        assert_eq!(rig.backend.idle(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_all_it_announced_need_not_end() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("hello");
    let head = request("POST", "/", Framing::Length(5));
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.expect("hello").await;
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
    assert_eq!(rig.backend.idle(), 1);
}

// P5.2
#[tokio::test(start_paused = true)]
async fn a_response_that_comes_early_is_passed_on_while_the_body_goes_out() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    let head = request("POST", "/", Framing::Chunked);
    let (reply, mut peer) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        feeder.data("one");
        peer.expect("3\r\none\r\n").await;
        peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nuno\r\n")
            .await;
        peer
    });
    let mut body = reply.expect("a reply").body;
    assert_eq!(data(&mut body).await, "uno");
    for (one, other) in [("two", "dos"), ("six", "seis")] {
        feeder.data(one);
        let (answered, ()) = tokio::join!(data(&mut body), async {
            peer.expect(&format!("3\r\n{one}\r\n")).await;
            peer.write(format!("{:x}\r\n{other}\r\n", other.len()))
                .await;
        });
        assert_eq!(answered, other);
    }
    drop(feeder);
    let (end, ()) = tokio::join!(body.frame(), async {
        peer.expect("0\r\n\r\n").await;
        peer.write("0\r\n\r\n").await;
    });
    assert!(end.is_none());
    assert_eq!(rig.backend.idle(), 1, "all was sent, all has come");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_over_before_the_body_ends_the_connection() {
    for response in [
        "HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nmuch",
        "HTTP/1.1 413 Too Large\r\ntransfer-encoding: chunked\r\n\r\n4\r\nmuch\r\n0\r\n\r\n",
    ] {
        let mut rig = Rig::new();
        let (feeder, body) = fed();
        feeder.data("one");
        let head = request("POST", "/", Framing::Length(1 << 40));
        let (reply, mut peer) = tokio::join!(rig.backend.send(0, head, body), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            peer.head().await;
            peer.write(response).await;
            peer
        });
        let reply = reply.expect("a reply");
        assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
        let body = text(reply.body).await;
        assert!(body.is_empty() || body == "much");
        assert_eq!((peer.closed().await, rig.backend.idle()), (3, 0));
        assert!(!feeder.is_wanted());
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_is_read_although_the_worker_takes_no_more() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("one");
    let head = request("POST", "/", Framing::Chunked);
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nmuch")
            .await;
        drop(peer);
        feeder.data("two");
    });
    let reply = reply.expect("a reply");
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(reply.body).await, "much");
    assert_eq!(rig.backend.idle(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_response_breaks_off_with_the_body_of_its_request() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    let head = request("POST", "/", Framing::Chunked);
    let (reply, mut peer) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nuno\r\n")
            .await;
        peer
    });
    feeder.break_off();
    let (before, error) = broken(reply.expect("a reply").body).await;
    assert_eq!(
        (&before[..], error.to_string().as_str()),
        (&b"uno"[..], "the client went away")
    );
    // The worker sees that the body is not whole: no last chunk has come.
    assert_eq!(peer.closed().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_closes_instead_of_answering_ends_an_upload() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("one");
    let head = request("POST", "/", Framing::Chunked);
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
    });
    let error = reply.expect_err("no response");
    assert_eq!(error.kind, ExchangeErrorKind::Reset);
    assert!(error.may_have_reached);
    assert!(!feeder.is_wanted());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_never_quiet_does_not_hide_the_response() {
    let mut rig = Rig::new();
    let pulled = std::sync::Arc::default();
    let body = super::rig::Endless {
        left: u64::MAX,
        frame: Bytes::from_static(&[b'x'; 1024]),
        pulled: std::sync::Arc::clone(&pulled),
    };
    let head = request("POST", "/", Framing::Chunked);
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
            .await;
        // It goes on to take whatever comes.
        peer.closed().await;
    });
    assert_eq!(
        reply.expect("a reply").status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
}

#[tokio::test(start_paused = true)]
async fn requests_follow_each_other_whatever_their_bodies_were() {
    let mut rig = Rig::new();
    let mut peer = None;
    for (framing, sent) in [
        (Framing::Length(5), "hello"),
        (Framing::None, ""),
        (Framing::Chunked, "5\r\nhello\r\n0\r\n\r\n"),
        (Framing::Length(5), "hello"),
    ] {
        let head = request("POST", "/", framing);
        let mut sending = std::pin::pin!(rig.backend.send(0, head, full("hello")));
        assert!(futures_util::poll!(&mut sending).is_pending());
        let peer = peer.get_or_insert_with(|| Peer::new(rig.accepted.try_recv().expect("one")));
        peer.head().await;
        peer.expect(sent).await;
        peer.write(OK).await;
        assert_eq!(text(sending.await.expect("a reply").body).await, "ok");
    }
    let mut sending = std::pin::pin!(rig.backend.send(0, get("/"), none()));
    assert!(futures_util::poll!(&mut sending).is_pending());
    assert_eq!(rig.dialled(), 1);
}
