//! Which headers pass, in which form (P5.5, P5.6).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use pinboard::proxy::rules::{RequestRules, strip_response, write_request};
use pinned_wire::attestation::Caller;
use proptest::prelude::*;

use super::rig::{Rig, Worker, says};

const DONE: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// Sends a request with these lines, and gives its head as the worker has it.
async fn forwarded(rig: &Rig, worker: &Worker, lines: &str) -> super::rig::Head {
    let request = format!("GET /rooms/alice HTTP/1.1\r\nHost: rooms.example\r\n{lines}\r\n");
    let mut client = rig.send(&request).await;
    let (_, head) = worker.answer(DONE).await;
    assert_eq!(client.head().await.status(), 204);
    head
}

#[tokio::test]
async fn headers_of_one_connection_end_here() {
    // "two `Connection` lines, the first empty, the second naming `x-secret` and pinboard's own headers: `x-secret` is gone
    // upstream, pinboard's own headers are there and cannot be forged."
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let epoch = rig.place("alice").await.to_string();
    let head = forwarded(
        &rig,
        &worker,
        "Connection: \r\nConnection: x-secret , pinboard-attestation,pinboard-epoch,, X-Forwarded-For, host\r\n\
         X-Secret: 1\r\nx-kept: 2\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\nUpgrade: foo\r\n\
         Proxy-Authorization: Basic x\r\nX-Forwarded-For: 9.9.9.9\r\n\
         pinboard-attestation: forged\r\npinboard-epoch: 7\r\nPinboard-Caller: eve\r\npinboard_epoch: 8\r\n\
         pinboard-from: /rooms/eve\r\npinboard-subrequest-depth: 3\r\n\
         pinboard-chain: /rooms/alice exclusive 0f.1\r\n",
    )
    .await;
    for gone in [
        "x-secret",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "upgrade",
        "proxy-authorization",
        "pinboard-caller",
        "pinboard_epoch",
        "pinboard-from",
        "pinboard-subrequest-depth",
        "pinboard-chain",
    ] {
        assert_eq!(
            head.headers(gone),
            Vec::<&str>::new(),
            "{gone}: {}",
            head.text
        );
    }
    assert_eq!(head.header("x-kept"), Some("2"));
    assert_eq!(head.header("host"), Some("rooms.example"));
    assert_eq!(head.header("pinboard-epoch"), Some(&*epoch));
    assert_eq!(worker.caller(&head), Some(Caller::Anonymous));
    // What proxies before this one have said cannot be taken away either.
    assert_eq!(head.header("x-forwarded-for"), Some("9.9.9.9, 127.0.0.1"));
}

#[tokio::test]
async fn where_a_request_came_from_is_appended() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let head = forwarded(&rig, &worker, "").await;
    assert_eq!(head.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(head.header("x-forwarded-proto"), Some("http"));
    assert_eq!(head.header("x-forwarded-host"), Some("rooms.example"));
    let head = forwarded(
        &rig,
        &worker,
        "X-Forwarded-For: 10.0.0.1\r\nx-forwarded-for: 10.0.0.2, 10.0.0.3\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Host: public.example\r\n",
    )
    .await;
    assert_eq!(
        head.header("x-forwarded-for"),
        Some("10.0.0.1, 10.0.0.2, 10.0.0.3, 127.0.0.1")
    );
    assert_eq!(head.header("x-forwarded-proto"), Some("https, http"));
    assert_eq!(
        head.header("x-forwarded-host"),
        Some("public.example, rooms.example")
    );
}

#[tokio::test]
async fn other_headers_pass_as_they_are() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let head = forwarded(
        &rig,
        &worker,
        "Cookie: a=b; c=d\r\nAuthorization: Basic x\r\nX-Twice: 1\r\nX-Twice: 2\r\nX-Empty:\r\n\
         X-Bytes: \u{e9}\r\nAccept: */*\r\n",
    )
    .await;
    assert_eq!(head.header("cookie"), Some("a=b; c=d"));
    assert_eq!(head.header("authorization"), Some("Basic x"));
    assert_eq!(head.headers("x-twice"), ["1", "2"]);
    assert_eq!(head.header("x-empty"), Some(""));
    assert_eq!(head.header("x-bytes"), Some("\u{e9}"));
    assert_eq!(head.header("accept"), Some("*/*"));
    assert_eq!(head.header("content-length"), None);
    assert_eq!(head.header("transfer-encoding"), None);
}

#[tokio::test]
async fn the_host_is_passed_on_unchanged() {
    // "`Host` with port, upper case, trailing dot, IPv6 literal, absent, twice"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for host in [
        "rooms.example:8080",
        "ROOMS.Example",
        "rooms.example.",
        "[2001:db8::1]:80",
        "",
    ] {
        let mut client = rig
            .send(&format!(
                "GET /rooms/alice HTTP/1.1\r\nHost: {host}\r\n\r\n"
            ))
            .await;
        let (_, head) = worker.answer(DONE).await;
        assert_eq!(head.header("host"), Some(host));
        assert_eq!(client.head().await.status(), 204);
    }
    for (lines, error) in [
        ("", "missing Host header"),
        ("Host: a\r\nHost: a\r\n", "more than one Host header"),
        ("Host: a b\r\n", "invalid Host header"),
        ("Host: a/b\r\n", "invalid Host header"),
        ("Host: eve@a\r\n", "invalid Host header"),
        ("Host: a, b\r\n", "invalid Host header"),
    ] {
        let mut client = rig
            .send(&format!("GET /rooms/alice HTTP/1.1\r\n{lines}\r\n"))
            .await;
        let (head, body) = client.response().await;
        assert_eq!(head.status(), 400, "{lines}");
        assert!(says(&body, error), "{lines}: {body}");
    }
    let mut client = rig
        .send("GET http://eve@a/rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 400);
    // HTTP/1.0 does not know of it.
    let mut client = rig.send("GET /rooms/alice HTTP/1.0\r\n\r\n").await;
    let (_, head) = worker.answer(DONE).await;
    assert_eq!(head.header("host"), Some(""));
    assert_eq!(head.header("x-forwarded-host"), None);
    assert_eq!(client.head().await.status(), 204);
}

#[tokio::test]
async fn headers_of_the_workers_connection_end_here_as_well() {
    // "The same for response headers"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.get("/rooms/alice").await;
    worker
        .answer(
            "HTTP/1.1 200 OK\r\nConnection:\r\nconnection: X-Secret, keep-alive\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\n\
             Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nX-Kept: 2\r\n\
             Set-Cookie: a=1\r\nSet-Cookie: b=2\r\npinboard-attestation: stolen\r\npinned-refusal: busy\r\n\r\n\
             2\r\nhi\r\n0\r\n\r\n",
        )
        .await;
    // All of the body was there with its head, so its length is known.
    let (head, body) = client.response().await;
    assert_eq!(body, "hi");
    for gone in [
        "connection",
        "transfer-encoding",
        "x-secret",
        "keep-alive",
        "proxy-authenticate",
        "upgrade",
        "pinboard-attestation",
        "pinned-refusal",
    ] {
        assert_eq!(
            head.headers(gone),
            Vec::<&str>::new(),
            "{gone}: {}",
            head.text
        );
    }
    assert_eq!(head.header("x-kept"), Some("2"));
    assert_eq!(head.headers("set-cookie"), ["a=1", "b=2"]);
}

#[tokio::test]
async fn the_answer_to_a_head_keeps_its_length() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send("HEAD /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let (mut peer, _) = worker
        .answer("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
        .await;
    let head = client.head().await;
    assert_eq!(head.header("content-length"), Some("5"));
    // The connections go on, on both sides.
    client
        .write("GET /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    peer.head().await;
    peer.write("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\netag: x\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 304);
    client
        .write("GET /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    peer.head().await;
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        .await;
    assert_eq!(client.response().await.1, "hi");
}

// --- The rules alone ---

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("connection"),
        Just("keep-alive"),
        Just("te"),
        Just("transfer-encoding"),
        Just("content-length"),
        Just("host"),
        Just("pinboard-epoch"),
        Just("pinboard_x"),
        Just("x-secret"),
        Just("x-kept"),
        Just("cookie"),
        Just("authorization"),
        Just("sec-websocket-protocol"),
        Just("x-forwarded-for"),
    ]
    .prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        names(),
        Just("pinboard.bearer.x, chat".to_owned())
    ]
}

proptest! {
    #[test]
    fn no_rule_lets_a_line_through_that_is_not_a_clients(
        lines in proptest::collection::vec((names(), values()), 0..12),
        strip in any::<bool>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            let name = HeaderName::try_from(name).expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        let rules = RequestRules {
            strip_authorization: strip,
            strip_bearer_subprotocol: strip,
            join_cookies: strip,
            keep_trailer: false,
        };
        let mut written = Vec::new();
        write_request(&mut written, &headers, rules);
        let text = String::from_utf8(written).expect("text");
        prop_assert!(text.is_empty() || text.ends_with("\r\n"));
        for line in text.split_terminator("\r\n") {
            let (name, value) = line.split_once(": ").expect("a line");
            prop_assert!(!name.starts_with("pinboard"), "{line}");
            prop_assert!(!["connection", "te", "host", "content-length"].contains(&name), "{line}");
            let listed = headers.get_all("connection").into_iter().any(|list| {
                list.to_str().expect("text").split(',').any(|token| token.trim() == name)
            });
            prop_assert!(!listed, "{line}");
            if strip {
                prop_assert!(name != "authorization", "{line}");
                prop_assert!(name != "sec-websocket-protocol" || !value.contains("pinboard.bearer."), "{line}");
            }
        }
        strip_response(&mut headers);
        for name in headers.keys() {
            prop_assert!(!name.as_str().starts_with("pinboard"));
            prop_assert!(!["connection", "te", "transfer-encoding"].contains(&name.as_str()));
        }
    }
}
