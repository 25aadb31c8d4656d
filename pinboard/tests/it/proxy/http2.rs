//! Clients that speak HTTP/2 (P5.4), to workers that do not.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::rig::{Peer, Rig, says, soon};

type Body = BoxBody<Bytes, std::convert::Infallible>;

/// A client that knows that it may speak HTTP/2.
struct Client {
    requests: SendRequest<Body>,
}

impl Client {
    async fn connect(rig: &Rig) -> Self {
        let stream = TcpStream::connect(rig.address).await.expect("listens");
        let shaking =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (requests, connection) = shaking.await.expect("a handshake");
        rig.domain.spawn(async move {
            let _ = connection.await;
        });
        Self { requests }
    }

    async fn send(&mut self, request: Request<Body>) -> Response<Incoming> {
        soon("an answer", self.requests.send_request(request))
            .await
            .expect("an answer")
    }
}

fn request(method: Method, target: &str) -> http::request::Builder {
    let uri = format!("http://rooms.example:8080{target}");
    Request::builder()
        .method(method)
        .uri(uri)
        .version(Version::HTTP_2)
}

fn none() -> Body {
    Empty::new().boxed()
}

/// A body that the test feeds frame by frame.
fn fed() -> (mpsc::UnboundedSender<Frame<Bytes>>, Body) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let frames =
        futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx).map(|frame| frame.map(Ok)));
    (sender, StreamBody::new(frames).boxed())
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(
        http::HeaderName::from_static("x-sum"),
        HeaderValue::from_static("1"),
    )])
}

async fn text(response: Response<Incoming>) -> String {
    let body = soon("a body", response.into_body().collect())
        .await
        .expect("whole");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

#[tokio::test]
async fn a_request_over_http_2_is_one_over_http_1_1_to_the_worker() {
    // P5.4, P5.5
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::GET, "/rooms/alice//%2F?x=%20")
        .header("cookie", "a=1")
        .header("x-kept", "2")
        .header("cookie", "b=2")
        .header("pinboard-epoch", "7")
        .header("te", "trailers")
        .body(none())
        .expect("a request");
    let answering = worker.answer(
        "HTTP/1.1 200 OK\r\nConnection: x-secret, keep-alive\r\nKeep-Alive: timeout=5\r\nX-Secret: 1\r\n\
         Upgrade: h2c\r\nProxy-Connection: x\r\nContent-Length: 2\r\nX-Kept: 3\r\n\r\nok",
    );
    let (response, (_, head)) = tokio::join!(client.send(asked), answering);
    assert_eq!(head.first_line(), "GET /rooms/alice//%2F?x=%20 HTTP/1.1");
    assert_eq!(head.header("host"), Some("rooms.example:8080"));
    assert_eq!(head.header("cookie"), Some("a=1; b=2"));
    assert_eq!(head.header("x-kept"), Some("2"));
    assert_eq!(head.header("te"), Some("trailers"));
    assert_eq!(head.header("x-forwarded-host"), Some("rooms.example:8080"));
    assert_ne!(head.header("pinboard-epoch"), Some("7"));
    assert_eq!(head.header("content-length"), None);
    // "towards an HTTP/2 client where hop-by-hop headers are a protocol error"
    assert_eq!(response.version(), Version::HTTP_2);
    for gone in [
        "connection",
        "keep-alive",
        "x-secret",
        "upgrade",
        "proxy-connection",
        "transfer-encoding",
    ] {
        assert!(!response.headers().contains_key(gone), "{gone}");
    }
    assert_eq!(response.headers()["x-kept"], "3");
    assert_eq!(text(response).await, "ok");
}

#[tokio::test]
async fn an_authority_that_differs_from_the_host_is_refused() {
    // "HTTP/2 `:authority` that differs from `Host`"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::GET, "/rooms/alice")
        .header("host", "eve.example")
        .body(none());
    let response = client.send(asked.expect("a request")).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(says(
        &text(response).await,
        "the authority of the request differs from its Host header"
    ));
    let asked = request(Method::GET, "/rooms/alice")
        .header("host", "ROOMS.example:8080")
        .body(none());
    let answering = worker.answer("HTTP/1.1 204 No Content\r\n\r\n");
    let (response, (_, head)) = tokio::join!(client.send(asked.expect("a request")), answering);
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(head.header("host"), Some("rooms.example:8080"));
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    // "a streamed response with an unannounced trailer, over HTTP/1.1 and HTTP/2, and a body of known length with trailers."
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    for (length, trailer) in [(None, None), (Some("2"), Some("x-sum"))] {
        let (feed, body) = fed();
        let mut asked = request(Method::POST, "/rooms/alice");
        if let Some(length) = length {
            asked = asked.header("content-length", length);
        }
        if let Some(trailer) = trailer {
            asked = asked.header("trailer", trailer);
        }
        feed.send(Frame::data("hi".into())).expect("wanted");
        feed.send(Frame::trailers(trailers())).expect("wanted");
        drop(feed);
        let answering = async {
            let (mut peer, head) = worker.asked().await;
            assert_eq!(head.header("transfer-encoding"), Some("chunked"));
            assert_eq!(head.header("content-length"), None);
            peer.expect("2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n").await;
            peer.write("HTTP/1.1 200 OK\r\nconnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n").await;
            peer
        };
        let (response, _peer) =
            tokio::join!(client.send(asked.body(body).expect("a request")), answering);
        let whole = soon("a body", response.into_body().collect())
            .await
            .expect("whole");
        assert_eq!(whole.trailers(), Some(&trailers()));
        assert_eq!(whole.to_bytes(), "ok");
    }
    // Where they are not announced beside a length, the length holds and they end here.
    let (feed, body) = fed();
    let asked = request(Method::POST, "/rooms/alice").header("content-length", "2");
    feed.send(Frame::data("hi".into())).expect("wanted");
    feed.send(Frame::trailers(trailers())).expect("wanted");
    drop(feed);
    let answering = async {
        let (mut peer, head) = worker.asked().await;
        assert_eq!(head.header("content-length"), Some("2"));
        peer.expect("hi").await;
        peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
        peer
    };
    let (response, _peer) =
        tokio::join!(client.send(asked.body(body).expect("a request")), answering);
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn trailers_carry_nothing_that_headers_may_not() {
    // P5.5, and "the same for response headers, and towards an HTTP/2 client where hop-by-hop headers are a protocol error"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let (feed, body) = fed();
    let mut sent = trailers();
    for forged in ["pinboard-epoch", "pinboard_epoch", "x-forwarded-for"] {
        sent.insert(forged, "9".parse().expect("a value"));
    }
    feed.send(Frame::data("hi".into())).expect("wanted");
    feed.send(Frame::trailers(sent)).expect("wanted");
    drop(feed);
    let asked = request(Method::POST, "/rooms/alice");
    let answering = async {
        let (mut peer, _) = worker.asked().await;
        peer.expect("2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n").await;
        peer.write(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nConnection: x\r\nKeep-Alive: y\r\n\
             Transfer-Encoding: chunked\r\nContent-Length: 7\r\npinboard-epoch: 9\r\npinned-refusal: busy\r\nx-sum: 1\r\n\r\n",
        )
        .await;
        peer
    };
    let (response, _peer) =
        tokio::join!(client.send(asked.body(body).expect("a request")), answering);
    let whole = soon("a body", response.into_body().collect())
        .await
        .expect("whole");
    assert_eq!(whole.trailers(), Some(&trailers()));
    assert_eq!(whole.to_bytes(), "ok");
}

#[tokio::test]
async fn a_body_is_delimited_whether_or_not_its_length_is_said() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::POST, "/rooms/alice")
        .body(none())
        .expect("a request");
    let answering = worker.answer("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    let (_, (_, head)) = tokio::join!(client.send(asked), answering);
    assert_eq!(head.header("content-length"), Some("0"));

    let asked = request(Method::POST, "/rooms/alice")
        .header("expect", "100-continue")
        .body(Full::new("hello".into()).boxed())
        .expect("a request");
    let answering = async {
        let (mut peer, head) = worker.asked().await;
        assert_eq!(head.header("content-length"), Some("5"));
        assert_eq!(head.header("expect"), None);
        peer.expect("hello").await;
        peer.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end")
            .await;
        peer.finish().await;
    };
    let (response, ()) = tokio::join!(client.send(asked), answering);
    assert_eq!(text(response).await, "until the end");
}

#[tokio::test]
async fn a_stream_that_its_client_resets_ends_at_the_worker() {
    // "a client leaves before the first response byte, after the headers, and in mid-stream"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::GET, "/rooms/alice")
        .body(none())
        .expect("a request");
    let (mut peer, _) = {
        let asking = client.requests.send_request(asked);
        tokio::pin!(asking);
        let asked = tokio::select! {
            biased;
            asked = worker.asked() => asked,
            response = &mut asking => panic!("nobody has answered: {response:?}"),
        };
        asked
    };
    assert_eq!(peer.rest().await, b"");

    let asked = request(Method::GET, "/rooms/alice")
        .body(none())
        .expect("a request");
    let answering =
        worker.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
    let (response, (mut peer, _)) = tokio::join!(client.send(asked), answering);
    let mut body = response.into_body();
    body.frame().await.expect("a frame").expect("no error");
    drop(body);
    assert_eq!(peer.rest().await, b"");
    // The connection itself goes on.
    let asked = request(Method::GET, "/healthz")
        .body(none())
        .expect("a request");
    assert_eq!(client.send(asked).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_that_breaks_off_resets_its_stream() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::GET, "/rooms/alice")
        .body(none())
        .expect("a request");
    let answering = worker.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi");
    let (response, (peer, _)) = tokio::join!(client.send(asked), answering);
    drop(peer);
    let body = soon("an end", response.into_body().collect()).await;
    assert!(body.is_err(), "it does not look whole");
}

#[tokio::test]
async fn a_stalled_stream_holds_up_no_other() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = Client::connect(&rig).await;
    let asked = request(Method::GET, "/rooms/alice")
        .body(none())
        .expect("a request");
    let answering = worker.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let (stalled, (peer, _)) = tokio::join!(client.send(asked), answering);
    // Nobody reads it, so at some point nobody takes it.
    let chunk = [&b"10000\r\n"[..], &[7; 0x10000], b"\r\n"].concat();
    let (mut sent, mut waits) = (0, 0);
    while waits < 50 {
        match peer.stream.try_write(&chunk[sent % chunk.len()..]) {
            Ok(written) => (sent, waits) = (sent + written, 0),
            Err(_) => {
                waits += 1;
                tokio::task::yield_now().await;
            }
        }
        assert!(sent < 32 << 20, "{sent} bytes were taken");
    }
    let asked = request(Method::GET, "/rooms/alice")
        .body(none())
        .expect("a request");
    let answering = worker.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let (response, _) = tokio::join!(client.send(asked), answering);
    assert_eq!(text(response).await, "ok");
    assert!(
        stalled.into_body().frame().now_or_never().is_some(),
        "and it has come"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_vanishes_is_noticed() {
    // "a peer that vanishes without FIN is noticed within ping + timeout; the connection count falls"
    let rig = Rig::new().await;
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let server = rig.server.clone();
    let serving = rig.domain.spawn(async move {
        server
            .serve_connection(0, theirs, ([192, 0, 2, 1], 4711).into())
            .await;
    });
    let mut silent = Peer::new(ours);
    // A whole beginning, and then no answer to any ping.
    silent.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    silent.write([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    let began = rig.domain.monotonic();
    serving.await.expect("no panic");
    let took = rig.domain.monotonic() - began;
    assert!(took <= std::time::Duration::from_secs(41), "{took:?}");
    assert_eq!(rig.server.connections().now, 0);
}
