//! The client against servers that say exactly what a test has them say.

#![allow(
    clippy::disallowed_methods,
    reason = "real sockets; the servers are no part of a domain"
)]

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;

#[test]
fn a_path_comes_behind_that_of_the_control_plane() {
    for (base, joined) in [
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080/rooms/a?b=c"),
        ("http://10.0.0.1:8080/", "http://10.0.0.1:8080/rooms/a?b=c"),
        (
            "https://pinboard/fleet/one/",
            "https://pinboard/fleet/one/rooms/a?b=c",
        ),
        ("http://[::1]", "http://[::1]/rooms/a?b=c"),
    ] {
        let base = Base::new(base).expect("a URL");
        let url = base.join(PathAndQuery::from_static("/rooms/a?b=c"));
        assert_eq!(url.expect("a URL").to_string(), joined);
    }
    for wrong in ["", "/rooms", "pinboard:8080", "http://"] {
        assert!(Base::new(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn what_a_request_line_cannot_carry_is_encoded() {
    for base in ["http://pinboard", "http://pinboard/zwölf"] {
        let base = Base::new(base).expect("a URL");
        let target = "/rooms/a/köln/%C3%B6/{x}?q=ü|&r=%22".parse::<Uri>();
        let target = target.expect("a target").into_parts().path_and_query;
        let url = base.join(target.expect("a path")).expect("a URL");
        let url = url.to_string();
        let end = "/rooms/a/k%C3%B6ln/%C3%B6/%7Bx%7D?q=%C3%BC%7C&r=%22";
        assert!(url.ends_with(end) && url.is_ascii(), "{url}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_peer_that_has_vanished_is_noticed_within_a_minute() {
    use tower::ServiceExt as _;

    let (_listener, url) = listen("127.0.0.1:0").await;
    let io = tcp().oneshot(url.parse().expect("a URL")).await;
    let stream = io.expect("a connection").into_inner();
    let socket = socket2::SockRef::from(&stream);
    let seconds = Duration::from_secs;
    assert!(socket.tcp_nodelay().expect("an option"));
    assert!(socket.keepalive().expect("an option"));
    // One that is silent, such as one that waits for an answer.
    assert_eq!(socket.tcp_keepalive_time().expect("an option"), seconds(15));
    assert_eq!(
        socket.tcp_keepalive_interval().expect("an option"),
        seconds(15)
    );
    assert_eq!(socket.tcp_keepalive_retries().expect("an option"), 3);
    // One that has bytes on their way.
    assert_eq!(
        socket.tcp_user_timeout().expect("an option"),
        Some(seconds(30))
    );
}

async fn listen(at: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind(at).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (listener, url)
}

/// Reads a head.
async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.expect("a head");
        read.push(byte);
    }
    String::from_utf8(read).expect("text")
}

fn plane(url: &str) -> HttpDataPlane {
    HttpDataPlane::new(HttpClient::new().expect("a client"), url).expect("a URL")
}

fn request(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::new(body.into());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path");
    request
}

async fn text(response: Response) -> Result<Bytes, axum::Error> {
    response.into_body().collect().await.map(|b| b.to_bytes())
}

/// Answers one request on each connection with the next of `answers`, and closes it.
fn answering(listener: TcpListener, answers: Vec<&'static str>) -> JoinHandle<Vec<String>> {
    tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            heads.push(head(&mut stream).await);
            let sent = stream.write_all(answer.as_bytes()).await;
            sent.expect("it is read");
        }
        heads
    })
}

// W14.6: what comes is the answer, whatever it is.
#[tokio::test]
async fn every_answer_is_passed_on_as_it_is() {
    let answers = [
        (
            Method::GET,
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            302,
            Some("ok"),
        ),
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n",
            200,
            Some(""),
        ),
        (
            Method::GET,
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            204,
            Some(""),
        ),
        (
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nContent-Length: 9\r\n\r\n",
            304,
            Some(""),
        ),
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
            200,
            Some("abc"),
        ),
        (
            Method::GET,
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
            200,
            Some("x"),
        ),
        (
            Method::GET,
            "HTTP/1.0 200 OK\r\n\r\nto the end",
            200,
            Some("to the end"),
        ),
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw",
            200,
            Some("raw"),
        ),
        // Those that break off say so.
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\ncut",
            200,
            None,
        ),
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            200,
            None,
        ),
    ];
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, url) = listen(at).await;
        let server = answering(listener, answers.iter().map(|answer| answer.1).collect());
        let plane = plane(&format!("{url}/base/"));
        for (method, said, status, body) in &answers {
            let request = request(method.clone(), "/rooms/a?b=c", Body::empty());
            let answer = plane.call(request).await.expect(said);
            assert_eq!(answer.status(), *status, "{said}");
            match (text(answer).await, body) {
                (Ok(read), Some(body)) => assert_eq!(read, body, "{said}"),
                (Err(_), None) => {}
                (read, _) => panic!("{said}: {read:?}"),
            }
        }
        let host = url.trim_start_matches("http://");
        for (head, (method, ..)) in server.await.expect("no panic").iter().zip(&answers) {
            let whole = format!("{method} /base/rooms/a?b=c HTTP/1.1\r\nhost: {host}\r\n\r\n");
            assert_eq!(*head, whole);
        }
    }
}

#[tokio::test]
async fn an_upgrade_is_what_the_answer_says_it_is() {
    let (listener, url) = listen("127.0.0.1:0").await;
    let server = tokio::spawn(async move {
        for answer in ["200 OK", "426 Upgrade Required"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            head(&mut stream).await;
            let answer =
                format!("HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
            stream
                .write_all(answer.as_bytes())
                .await
                .expect("it is read");
        }
        let (mut stream, _) = listener.accept().await.expect("a connection");
        head(&mut stream).await;
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        stream.write_all(answer).await.expect("it is read");
        let mut said = [0; 3];
        stream.read_exact(&mut said).await.expect("it is said");
        said
    });
    let plane = plane(&url);
    for status in [200, 426, 101] {
        let mut request = request(Method::GET, "/rooms/a", Body::empty());
        for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket")] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().insert(name, value);
        }
        let mut answer = plane.call(request).await.expect("an answer");
        assert_eq!(answer.status(), status);
        if status != 101 {
            assert_eq!(text(answer).await.expect("whole"), "no");
            continue;
        }
        let upgraded = hyper::upgrade::on(&mut answer).await;
        let mut io = TokioIo::new(upgraded.expect("what it becomes"));
        let mut said = [0; 5];
        io.read_exact(&mut said).await.expect("it is said");
        assert_eq!(&said, b"hello");
        io.write_all(b"hey").await.expect("it is read");
    }
    assert_eq!(&server.await.expect("no panic"), b"hey");
}

// P5.9: a refusal comes before the body has ended.
#[tokio::test]
async fn an_answer_may_come_before_the_body_has_ended() {
    for closes in [false, true] {
        let (listener, url) = listen("127.0.0.1:0").await;
        let server = tokio::spawn(async move {
            let (mut first, _) = listener.accept().await.expect("a connection");
            head(&mut first).await;
            let answer = b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno";
            first.write_all(answer).await.expect("it is read");
            let first = (!closes).then_some(first);
            // The next is on another connection: on the first one the body still comes.
            let (mut second, _) = listener.accept().await.expect("a connection");
            head(&mut second).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            second.write_all(answer).await.expect("it is read");
            drop(first);
        });
        let plane = plane(&url);
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]);
        let body = Body::from_stream(first.chain(stream::pending()));
        for (request, status, said) in [
            (request(Method::POST, "/rooms/a", body), 503, "no"),
            (request(Method::GET, "/rooms/a", Body::empty()), 200, "ok"),
        ] {
            let answer = plane.call(request).await.expect("an answer");
            assert_eq!(answer.status(), status);
            assert_eq!(text(answer).await.expect("whole"), said);
        }
        server.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_call_that_may_have_run_is_not_sent_again() {
    let (listener, url) = listen("127.0.0.1:0").await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        head(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).await.expect("it is read");
        // The second comes on the same connection, which breaks off.
        head(&mut stream).await;
        drop(stream);
        listener
    });
    let plane = plane(&url);
    let call = || plane.call(request(Method::POST, "/rooms/a", Body::empty()));
    let answer = call().await.expect("an answer");
    assert_eq!(text(answer).await.expect("whole"), "ok");
    assert!(call().await.is_err());
    // Nobody answers a third.
    drop(server);
}

// W2.3
#[tokio::test]
async fn an_answer_of_the_control_plane_has_an_end() {
    let (listener, url) = listen("127.0.0.1:0").await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        head(&mut stream).await;
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while sent.is_ok() {
            sent = stream.write_all(&[b'x'; 1 << 16]).await;
        }
    });
    let client = HttpClient::new().expect("a client");
    let token = Secret::new("271828182845");
    let plane = HttpControlPlane::new(client, &url, &token).expect("a URL");
    let error = plane.post("/registry/heartbeat", b"{}".to_vec()).await;
    let error = error.expect_err("too long").to_string();
    assert_eq!(error, "the answer of the control plane is too long");
    // Whoever sent it is let go.
    server.await.expect("no panic");
}
