//! Requests as no client library would write them.

use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::response::Response;
use futures_util::future::join_all;
use futures_util::stream;
use pinned::{Instance, PinnedWorker, WebSocket, pinned_api, route};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::clients::serve;
use crate::rig::{domain, millis, secs};

#[derive(Default)]
struct Plain;

#[pinned_api]
impl Plain {
    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "root"
    }

    #[route::get("/items/{item}")]
    async fn item(&self, Path(item): Path<String>) -> String {
        item
    }

    #[route::post("/body")]
    async fn body(&self, body: Bytes) -> String {
        body.len().to_string()
    }

    #[route::post("/refuse")]
    async fn refuse(&mut self) -> http::StatusCode {
        http::StatusCode::IM_A_TEAPOT
    }

    #[route::get("/stream")]
    async fn stream(&self) -> Response {
        let endless = stream::pending::<Result<Bytes, std::io::Error>>();
        Response::new(Body::from_stream(endless))
    }

    #[route::websocket("/socket")]
    async fn socket(_this: Instance<Self>, mut socket: WebSocket) {
        while socket.recv().await.is_some() {}
    }
}

/// The status of the first answer to `bytes`; 0 where the connection ends without one.
async fn ask(address: SocketAddr, bytes: &[u8]) -> (u16, String) {
    let mut client = TcpStream::connect(address).await.expect("connected");
    client.write_all(bytes).await.expect("sent");
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match domain().timeout(millis(300), client.read(&mut piece)).await {
            Ok(Ok(0) | Err(_)) | Err(_) => break,
            Ok(Ok(length)) => seen.extend_from_slice(&piece[..length]),
        }
    }
    let text = String::from_utf8_lossy(&seen).into_owned();
    let status = text
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5)?.parse().ok())
        .unwrap_or(0);
    (status, text)
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn whatever_is_sent_is_answered_and_leaves_nothing_behind() {
    let worker = PinnedWorker::builder()
        .host::<Plain>("/p")
        .build()
        .expect("built");
    let (address, server) = serve(&worker).await;
    let long = "a".repeat(256);
    let longer = "a".repeat(257);
    let mut cases: Vec<(Vec<u8>, u16)> = vec![];
    for (target, status) in [
        ("/p/a", 200),
        ("http://elsewhere/p/a/", 200),
        ("http://elsewhere", 404),
        ("*", 404),
        ("//p/a", 404),
        ("/", 404),
        ("//", 404),
        ("/p", 404),
        ("/p/", 400),
        ("/p//", 400),
        ("/p//items/x", 400),
        ("/p/a//", 404),
        ("/p/%", 400),
        ("/p/%zz", 400),
        ("/p/%00", 400),
        ("/p/%2e", 400),
        ("/p/%2e%2e", 400),
        ("/p/..", 400),
        ("/p/%2F", 404),
        ("/p/%ff", 400),
        ("/p/%61", 200),
        ("/p/%2561", 400),
        ("/p/a%20", 400),
        ("/p/a?x=%zz", 200),
        ("/p/a/items/%ff", 400),
        ("/p/a/items/%2F", 200),
        ("/p/a/items/", 404),
        ("/p/a/items/x/", 307),
        ("/p/a/items//x", 404),
        (&*format!("/p/{long}"), 200),
        (&*format!("/p/{longer}"), 400),
        ("/P/a", 404),
        ("/%70/a", 404),
    ] {
        cases.push((get(target), status));
    }
    let raw: [(&[u8], u16); 22] = [
        (b"GET /p/\xff HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET /p/\xc3\xa9 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET /p/a HTTP/1.0\r\n\r\n", 200),
        (b"GET /p/a HTTP/1.1\r\n\r\n", 200),
        (b"CONNECT p:1 HTTP/1.1\r\nhost: x\r\n\r\n", 404),
        (b"CONNECT /p/a HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 404),
        (b"TRACE /p/a HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"HEAD /p/a/stream HTTP/1.1\r\nhost: x\r\n\r\n", 200),
        (b"HEAD /p/a/socket HTTP/1.1\r\nhost: x\r\n\r\n", 426),
        (
            b"HEAD /p/a/socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            400,
        ),
        (
            b"GET /p/a/socket HTTP/1.0\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            426,
        ),
        (
            b"GET /p/a/socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: !\r\n\r\n",
            400,
        ),
        (
            b"POST /p/a/body HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc",
            400,
        ),
        (
            b"POST /p/a/body HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
            400,
        ),
        (
            b"POST /p/a/body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            400,
        ),
        (
            b"POST /p/a/body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
            400,
        ),
        (
            b"POST /p/a/refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n",
            418,
        ),
        (
            b"POST /p/a/refuse HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            418,
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 400),
        (b"\r\n\r\n\r\n", 0),
    ];
    cases.extend(raw.map(|(bytes, status)| (bytes.to_vec(), status)));
    let mut head = b"GET /p/a HTTP/1.1\r\nhost: x\r\n".to_vec();
    head.extend(format!("x: {}\r\n\r\n", "y".repeat(600_000)).into_bytes());
    cases.push((head, 431));
    let asked = cases.iter().map(|(bytes, status)| async move {
        let (answered, text) = ask(address, bytes).await;
        let shown = bytes[..bytes.len().min(120)].escape_ascii();
        (answered != *status).then(|| format!("{shown} -> {answered}, not {status}: {text:.200}"))
    });
    let wrong: Vec<String> = join_all(asked).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every connection has ended by now or ends with its server; nothing counts any more.
    let ended = async {
        loop {
            let stats = worker.stats();
            let rows = stats["instances"].as_array().expect("rows").clone();
            if rows
                .iter()
                .all(|row| row["tasks"] == 0 && row["connections"] == 0)
            {
                return;
            }
            domain().sleep(millis(10)).await;
        }
    };
    domain()
        .timeout(secs(5), ended)
        .await
        .expect("nothing counts");
    drop(server);
}

/// Sends the first byte alone, and the rest once it has been seen.
async fn ask_in_two(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut client = TcpStream::connect(address).await.expect("connected");
    client.set_nodelay(true).expect("set");
    client.write_all(&bytes[..1]).await.expect("sent");
    domain().sleep(millis(50)).await;
    client.write_all(&bytes[1..]).await.expect("sent");
    let mut piece = [0; 4096];
    let read = domain().timeout(secs(10), client.read(&mut piece)).await;
    let length = read.expect("answered").expect("read");
    piece[..length].to_vec()
}

#[tokio::test]
async fn both_versions_of_http_are_served_however_their_first_bytes_arrive() {
    let worker = PinnedWorker::builder()
        .host::<Plain>("/plain")
        .build()
        .expect("valid");
    let (address, serving) = serve(&worker).await;
    let post = b"POST /plain/a/body HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi";
    assert!(ask_in_two(address, post).await.starts_with(b"HTTP/1.1 200"));
    // The preface and an empty SETTINGS frame; the server's own SETTINGS come first in its answer.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let answer = ask_in_two(address, preface).await;
    assert_eq!(answer.get(3), Some(&4), "{answer:?}");
    serving.abort();
}
