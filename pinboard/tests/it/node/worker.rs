//! A worker that registers, heartbeats, and tells what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use pinboard::upstream::{Fetch, Fetcher as _, HttpFetcher};
use pinned_domain::{Domain, TaskHandle};
use pinned_wire::attestation;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

const SECRET: &str = "5ec2e7";

/// A worker of `/rooms`. It ends with this value.
pub(super) struct Worker {
    told: Arc<Told>,
    tasks: Vec<TaskHandle<()>>,
}

struct Told {
    client_id: String,
    session: Mutex<String>,
    /// The paths and epochs of its wakes.
    wakes: Mutex<Vec<(String, u64)>>,
}

impl Worker {
    /// Serves, registers with a node, and goes on to heartbeat.
    pub(super) async fn register(pinboard: SocketAddr, token: &str, client_id: &str) -> Self {
        let told = Arc::new(Told {
            client_id: client_id.to_owned(),
            session: Mutex::default(),
            wakes: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let router = Router::new()
            .route(
                "/_pinned/challenge",
                get(|| async { Json(json!({"value": "v"})) }),
            )
            .route("/rooms/{id}/_wake", post(wake))
            .route("/rooms/{id}/{*rest}", any(echo))
            .with_state(Arc::clone(&told));
        let serving = Domain::real().spawn(async move {
            axum::serve(listener, router).await.expect("a listener");
        });
        let registration = json!({
            "clientId": client_id, "secret": SECRET, "namespaces": ["/rooms"],
            "advertiseUrl": format!("http://{address}"), "headroom": 100, "draining": false,
            "challenge": "c", "challengeValue": "v",
        });
        let ack = call(pinboard, token, "register", &registration).await;
        let session = ack["sessionId"].as_str().expect("a session").to_owned();
        told.session.lock().clone_from(&session);
        let term = Duration::from_millis(ack["expiresInMs"].as_u64().expect("a term"));
        let token = token.to_owned();
        let beating = Domain::real().spawn(async move {
            let domain = Domain::real();
            loop {
                domain.sleep(term / 5).await;
                let beat = json!({"sessionId": session, "headroom": 100, "draining": false});
                call(pinboard, &token, "heartbeat", &beat).await;
            }
        });
        Self {
            told,
            tasks: vec![serving, beating],
        }
    }

    pub(super) fn wakes(&self) -> Vec<(String, u64)> {
        self.told.wakes.lock().clone()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// The answer; `null` when there is none, for the node may be gone.
async fn call(pinboard: SocketAddr, token: &str, route: &str, body: &Value) -> Value {
    let url = format!("http://{pinboard}/registry/{route}");
    let mut fetch = Fetch::get(Url::parse(&url).expect("a URL"));
    fetch.method = Method::POST;
    fetch.body = body.to_string().into();
    let authorization = format!("Bearer {token}").parse().expect("a header");
    fetch.headers.insert("authorization", authorization);
    match HttpFetcher::new(Domain::real()).fetch(fetch).await {
        Ok(answer) => serde_json::from_slice(&answer.body).expect("JSON"),
        Err(_) => Value::Null,
    }
}

impl Told {
    /// The epoch of an attested request.
    fn epoch(&self, headers: &HeaderMap) -> String {
        let token = headers["pinboard-attestation"].to_str().expect("text");
        let session = self.session.lock().clone();
        let claims = attestation::verify(SECRET, &[&session], Domain::real().now(), token);
        claims.expect("attested for this session");
        headers["pinboard-epoch"].to_str().expect("text").to_owned()
    }
}

async fn echo(
    State(told): State<Arc<Told>>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Json<Value> {
    let epoch = told.epoch(&headers);
    Json(json!({"worker": told.client_id, "path": uri.to_string(), "epoch": epoch}))
}

async fn wake(
    State(told): State<Arc<Told>>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> impl IntoResponse {
    let epoch = told.epoch(&headers).parse().expect("digits");
    told.wakes.lock().push((uri.to_string(), epoch));
    Json(json!({"ok": true}))
}
