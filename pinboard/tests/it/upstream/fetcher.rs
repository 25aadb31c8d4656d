//! Small requests with small answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher as _, HttpFetcher, Resolve};
use pinned_domain::Domain;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::rig::{Peer, pipes};

/// Knows one name, and what it was asked.
#[derive(Clone, Default)]
struct Names {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Names {
    fn resolve(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.asked.lock().push(format!("{host}:{port}"));
        let found = match host {
            "keys.example" => Ok(vec![([10, 0, 0, 1], port).into()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        async move { found }.boxed()
    }
}

struct Rig {
    fetcher: HttpFetcher,
    accepted: mpsc::UnboundedReceiver<DuplexStream>,
    names: Names,
}

fn rig() -> Rig {
    let (connector, accepted, _) = pipes();
    let names = Names::default();
    Rig {
        fetcher: HttpFetcher::with(Domain::real(), connector, names.clone()),
        accepted,
        names,
    }
}

impl Rig {
    /// What comes of `fetch` when the server answers `response`; and the head of the request.
    async fn fetch(
        &mut self,
        fetch: Fetch,
        response: &str,
    ) -> (Result<Fetched, FetchError>, String) {
        tokio::join!(self.fetcher.fetch(fetch), async {
            let mut peer = Peer::new(self.accepted.recv().await.expect("a connection"));
            let head = peer.head().await;
            peer.write(response).await;
            head
        })
    }
}

fn get(url: &str) -> Fetch {
    Fetch::get(url.parse().expect("a URL"))
}

// P2.3
#[tokio::test(start_paused = true)]
async fn a_get_is_answered_whole() {
    let mut rig = rig();
    let mut fetch = get("http://keys.example:81/_pinned/challenge?challenge=a%20b#part");
    fetch
        .headers
        .insert("pinboard-proxy-secret", HeaderValue::from_static("s"));
    fetch
        .headers
        .insert("content-length", HeaderValue::from_static("7"));
    fetch
        .headers
        .insert("host", HeaderValue::from_static("other"));
    let response = "HTTP/1.1 200 OK\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    let (fetched, head) = rig.fetch(fetch, response).await;
    let fetched = fetched.expect("an answer");
    assert_eq!(fetched.status, StatusCode::OK);
    assert_eq!(fetched.headers["x-a"], "b");
    assert_eq!(fetched.body, "hello");
    let expected = "GET /_pinned/challenge?challenge=a%20b HTTP/1.1\r\nhost: keys.example:81\r\n\
        connection: close\r\npinboard-proxy-secret: s\r\n\r\n";
    assert_eq!(head, expected);
    assert_eq!(*rig.names.asked.lock(), ["keys.example:81"]);
}

// P8.2
#[tokio::test(start_paused = true)]
async fn a_post_sends_its_body() {
    for (body, length) in [("", 0), ("hello", 5)] {
        let mut rig = rig();
        let mut fetch = get("http://keys.example/");
        fetch.method = Method::POST;
        fetch.body = Bytes::from_static(body.as_bytes());
        let (fetched, head) = rig.fetch(fetch, "HTTP/1.1 202 Accepted\r\n\r\n").await;
        assert_eq!(fetched.expect("an answer").status, StatusCode::ACCEPTED);
        assert!(
            head.starts_with("POST / HTTP/1.1\r\nhost: keys.example\r\n"),
            "{head}"
        );
        assert!(
            head.ends_with(&format!("content-length: {length}\r\n\r\n")),
            "{head}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_addresses_that_are_given_are_the_only_ones() {
    let mut rig = rig();
    let mut fetch = get("http://nobody.example/");
    fetch.addresses = Some(vec![([10, 0, 0, 2], 80).into()]);
    let (fetched, _) = rig.fetch(fetch.clone(), "HTTP/1.1 200 OK\r\n\r\n").await;
    fetched.expect("an answer");
    fetch.addresses = Some(Vec::new());
    let nowhere = rig.fetcher.fetch(fetch).await;
    assert!(
        matches!(nowhere, Err(FetchError::Connect(_))),
        "{nowhere:?}"
    );
    assert!(rig.names.asked.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_address_in_the_url_is_not_looked_up() {
    for (url, host) in [
        ("http://10.0.0.3:8/", "10.0.0.3:8"),
        ("http://[::1]/", "[::1]"),
    ] {
        let mut rig = rig();
        let (fetched, head) = rig.fetch(get(url), "HTTP/1.1 200 OK\r\n\r\n").await;
        fetched.expect("an answer");
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
        assert!(rig.names.asked.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_not_known_cannot_be_connected_to() {
    let outcome = rig().fetcher.fetch(get("http://nobody.example/")).await;
    assert!(
        matches!(outcome, Err(FetchError::Connect(_))),
        "{outcome:?}"
    );
    let mut refused = rig();
    refused.accepted.close();
    let outcome = refused.fetcher.fetch(get("http://keys.example/")).await;
    assert!(
        matches!(outcome, Err(FetchError::Connect(_))),
        "{outcome:?}"
    );
    let outcome = refused.fetcher.fetch(get("data:text/plain,x")).await;
    assert!(
        matches!(outcome, Err(FetchError::Connect(_))),
        "{outcome:?}"
    );
}

// P2.3: no redirects followed.
#[tokio::test(start_paused = true)]
async fn a_redirect_comes_back_as_it_is() {
    let mut rig = rig();
    let response =
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let (fetched, _) = rig.fetch(get("http://keys.example/"), response).await;
    assert_eq!(
        fetched.expect("an answer").headers["location"],
        "http://169.254.169.254/"
    );
    assert!(rig.accepted.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_longer_than_it_may_be_is_not_read() {
    for (response, is_too_long) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\n\r\nhello!", true),
    ] {
        let mut fetch = get("http://keys.example/");
        fetch.limit = 5;
        match rig().fetch(fetch, response).await.0 {
            Ok(fetched) => assert!(!is_too_long && fetched.body == "hello", "{response}"),
            Err(FetchError::TooLong(5)) => assert!(is_too_long, "{response}"),
            Err(error) => panic!("{response}: {error:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_an_error() {
    for response in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "no\r\n",
    ] {
        let (outcome, _) = rig().fetch(get("http://keys.example/"), response).await;
        assert!(
            matches!(outcome, Err(FetchError::Answer(_))),
            "{response}: {outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_it_has_one_limit_of_time() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell"] {
        let mut rig = rig();
        let start = Domain::real().monotonic();
        let mut fetch = get("http://keys.example/");
        fetch.timeout = Duration::from_secs(5);
        let (outcome, mut peer) = tokio::join!(rig.fetcher.fetch(fetch), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            peer.head().await;
            peer.write(response).await;
            peer
        });
        assert!(
            matches!(outcome, Err(FetchError::Timeout(_))),
            "{outcome:?}"
        );
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        assert_eq!(peer.closed().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_has_no_body() {
    let mut fetch = get("http://keys.example/");
    fetch.method = Method::HEAD;
    let (fetched, head) = rig()
        .fetch(fetch, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
        .await;
    assert!(fetched.expect("an answer").body.is_empty());
    assert!(head.starts_with("HEAD / HTTP/1.1\r\n"), "{head}");
}
