//! What comes from outside: increments, and an operator's orders.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pinboard::testing::InstanceKey;

use super::fleet::{Fleet, TOKEN};
use super::net::Host;
use super::watch::NUMBER;

pub(super) const NS: &str = "/counters";
/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(8);

/// A client of a fleet.
#[derive(Clone)]
pub(super) struct Client {
    fleet: Arc<Fleet>,
    numbers: Arc<AtomicU64>,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Client {
    pub(super) fn new(fleet: &Arc<Fleet>) -> Self {
        Self {
            fleet: Arc::clone(fleet),
            numbers: Arc::default(),
        }
    }

    /// Adds one, through a node; the status, when there was an answer.
    pub(super) async fn increment(&self, node: usize, id: &str) -> Option<StatusCode> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let request = Request::post(format!("{NS}/{id}/increment")).header(NUMBER, number);
        let request = request.body(Full::default()).expect("a request");
        let answer = self.send(node, request).await.ok()?;
        let watch = &self.fleet.watch;
        if answer.status == StatusCode::OK {
            // S8.6
            if !watch.was_delivered(number) {
                watch.violation(format!("S8.6: request {number} was answered by nobody"));
            }
            match std::str::from_utf8(&answer.body).map(str::parse) {
                Ok(Ok(count)) => watch.ledger.acknowledge(&InstanceKey::new(NS, id), count),
                _ => watch.violation(format!("request {number} for {id}: not a count")),
            }
        }
        Some(answer.status)
    }

    /// Tells a node what an operator wants.
    pub(super) async fn order(&self, node: usize, path: &str, body: &serde_json::Value) -> bool {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .body(Full::from(body.to_string()))
            .expect("a request");
        let answer = self.send(node, request).await;
        answer.is_ok_and(|answer| answer.status == StatusCode::OK)
    }

    async fn send(&self, node: usize, mut request: Request<Full<Bytes>>) -> io::Result<Answer> {
        let host = header::HeaderValue::from_static("fleet.test");
        request.headers_mut().insert(header::HOST, host);
        let domain = &self.fleet.domain;
        let exchange = async {
            let stream = self
                .fleet
                .net
                .connect(Host::Client, Host::Node(node))
                .await?;
            let handshake = http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, connection) = handshake.map_err(io::Error::other)?;
            let connection = Aborting(domain.spawn(async move { drop(connection.await) }));
            let response = sender.send_request(request).await;
            let (head, body) = response.map_err(io::Error::other)?.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            drop(connection);
            Ok(Answer {
                status: head.status,
                body,
            })
        };
        match domain.timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Ends with whoever waits: a client that gives up closes its connection.
struct Aborting(pinned_domain::TaskHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
