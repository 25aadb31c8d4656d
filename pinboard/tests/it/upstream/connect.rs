//! Making connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinboard::upstream::{Backend, CONNECT_TIMEOUT, Connector, Dial, ExchangeErrorKind, Stream};
use pinned_domain::Domain;
use tokio::net::TcpListener;

use super::rig::{Peer, get, none, options, text};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// What becomes of a connection depends on its port: 1 is refused, 2 never answers, and others are taken.
#[derive(Clone, Default)]
struct ByPort {
    asked: Arc<Mutex<Vec<u16>>>,
}

impl Dial for ByPort {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        self.asked.lock().push(address.port());
        match address.port() {
            1 => async { Err(io::ErrorKind::ConnectionRefused.into()) }.boxed(),
            2 => std::future::pending().boxed(),
            _ => async {
                let (ours, mut theirs) = tokio::io::duplex(1 << 10);
                tokio::io::AsyncWriteExt::write_all(&mut theirs, OK.as_bytes()).await?;
                // Nobody reads the request, and the response is there already.
                std::mem::forget(theirs);
                Ok(Stream::Other(Box::new(ours)))
            }
            .boxed(),
        }
    }
}

fn backend(ports: &[u16]) -> (Backend, ByPort) {
    let dial = ByPort::default();
    let addresses = ports.iter().map(|port| ([10, 0, 0, 1], *port).into());
    let options = options("http://worker/", addresses.collect());
    (
        Backend::with_connector(options, Connector::new(dial.clone())),
        dial,
    )
}

// P5.11
#[tokio::test(start_paused = true)]
async fn a_worker_that_refuses_is_unreachable() {
    let (backend, _) = backend(&[1]);
    let error = backend
        .send(0, get("/"), none())
        .await
        .expect_err("refused");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert_eq!(error.source.kind(), io::ErrorKind::ConnectionRefused);
    assert!(!error.may_have_reached);
}

// P5.12: connect 2 s.
#[tokio::test(start_paused = true)]
async fn a_worker_that_never_answers_is_given_up() {
    let (backend, _) = backend(&[2]);
    let start = Domain::real().monotonic();
    let error = backend
        .send(0, get("/"), none())
        .await
        .expect_err("nobody there");
    assert_eq!(error.kind, ExchangeErrorKind::ConnectTimeout);
    assert!(!error.may_have_reached);
    assert_eq!(
        (start.elapsed(), CONNECT_TIMEOUT),
        (Duration::from_secs(2), Duration::from_secs(2))
    );
}

#[tokio::test(start_paused = true)]
async fn addresses_are_tried_in_turn_from_the_one_that_worked() {
    let (backend, dial) = backend(&[1, 2, 3]);
    let start = Domain::real().monotonic();
    for _ in 0..2 {
        let reply = backend.send(0, get("/"), none()).await.expect("a reply");
        assert_eq!(text(reply.body).await, "ok");
    }
    assert_eq!(*dial.asked.lock(), [1, 2, 3, 3]);
    assert_eq!(start.elapsed(), CONNECT_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn without_an_address_nothing_is_dialled() {
    let (backend, dial) = backend(&[]);
    let error = backend
        .send(0, get("/"), none())
        .await
        .expect_err("nowhere");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached && dial.asked.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_http_and_https_are_spoken() {
    let options = options("ftp://worker/", vec![([10, 0, 0, 1], 3).into()]);
    let dial = ByPort::default();
    let backend = Backend::with_connector(options, Connector::new(dial.clone()));
    let error = backend
        .send(0, get("/"), none())
        .await
        .expect_err("not HTTP");
    assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput);
    assert!(!error.may_have_reached && dial.asked.lock().is_empty());
}

#[test]
fn the_path_of_the_url_comes_before_every_requests() {
    for (url, prefix) in [
        ("http://worker", ""),
        ("http://worker/", ""),
        ("http://worker/a/b", "/a/b"),
        ("http://worker/a/b/?q", "/a/b"),
    ] {
        let backend = Backend::new(options(url, Vec::new()));
        assert_eq!(backend.path_prefix(), prefix, "{url}");
    }
}

// Issue 4, 6: no DNS between the check of an address and its use.
#[tokio::test]
async fn names_are_never_looked_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let backend = Backend::new(options("http://nobody.invalid:1/", vec![address]));
    let (reply, ()) = tokio::join!(backend.send(0, get("/"), none()), async {
        let (stream, _) = listener.accept().await.expect("a connection");
        assert!(stream.nodelay().is_ok());
        let mut peer = Peer::new(stream);
        peer.head().await;
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let backend = Backend::new(options("http://worker/", vec![address]));
    let error = backend
        .send(0, get("/"), none())
        .await
        .expect_err("refused");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached);
}

#[test]
fn what_is_shown_of_a_backend_has_no_secrets_in_it() {
    let backend = Backend::new(options(
        "http://user:hunter2@worker/?key=hunter3",
        Vec::new(),
    ));
    let shown = format!("{backend:?}");
    assert!(
        shown.contains("worker") && !shown.contains("hunter"),
        "{shown}"
    );
}
