//! A worker behind its router, as the tests of this binary call it.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode};
use parking_lot::Mutex;
use pinned::wire::attestation::{Claims, mint};
use pinned::ws::InProcessUpgrade;
use pinned::{BoxError, PinnedWorker, Placements, RunningWorker, WorkerBuilder};
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tower::ServiceExt;

/// A running worker. It is aborted when this is dropped.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) worker: PinnedWorker,
    router: axum::Router,
    running: Arc<Mutex<Option<RunningWorker>>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// A request that is being put together.
#[must_use]
pub(crate) struct Call {
    app: App,
    request: http::request::Builder,
    body: Body,
}

pub(crate) type Socket = WebSocketStream<DuplexStream>;

impl App {
    pub(crate) async fn start(builder: WorkerBuilder) -> Self {
        crate::observe::stay_interested();
        let worker = builder.build().expect("a valid worker");
        let running = worker.run_lifespan().await.expect("the first start");
        Self {
            router: worker.into_router(),
            running: Arc::new(Mutex::new(Some(running))),
            worker,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Call {
        Call {
            app: self.clone(),
            request: Request::builder().method(method).uri(path),
            body: Body::empty(),
        }
    }

    /// What answers its requests.
    pub(crate) fn router(&self) -> axum::Router {
        self.router.clone()
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.request(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> Call {
        self.request(Method::POST, path)
    }

    /// What the worker's `/readyz` or `/livez` answers.
    pub(crate) async fn probe(&self, path: &str) -> Reply {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = self.worker.probes().oneshot(request).await;
        Reply::read(answer.expect("infallible")).await
    }

    pub(crate) fn attestation(&self) -> String {
        mint(self.worker.secret(), &self.claims())
    }

    /// Claims of an anonymous caller, for the session of [`Board`].
    pub(crate) fn claims(&self) -> Claims {
        Claims::new(SESSION, self.worker.domain().now())
    }

    /// Shuts down in order; requests are still answered after it.
    pub(crate) async fn shutdown(&self) {
        let running = self.running.lock().take().expect("shut down once");
        running.shutdown().await.expect("a clean shutdown");
    }
}

impl Call {
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.request = self.request.header(name, value.as_ref());
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.request = self.request.uri(path);
        self
    }

    /// As pinboard would send it.
    pub(crate) fn attested(self) -> Self {
        let token = self.app.attestation();
        self.header("pinboard-attestation", token)
    }

    pub(crate) fn epoch(self, epoch: u64) -> Self {
        self.header("pinboard-epoch", epoch.to_string())
    }

    pub(crate) fn json(self, body: &str) -> Self {
        let mut call = self.header("content-type", "application/json");
        call.body = Body::from(body.to_owned());
        call
    }

    pub(crate) async fn send(self) -> Reply {
        let request = self.request.body(self.body).expect("a request");
        let response = self.app.router.oneshot(request).await.expect("infallible");
        Reply::read(response).await
    }

    pub(crate) async fn text(self) -> String {
        let reply = self.send().await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        reply.body
    }

    /// Sends it from a task of its own, which runs until it waits.
    pub(crate) async fn begin(self) -> JoinHandle<Reply> {
        let task = spawn(self.send());
        settle().await;
        task
    }

    /// Opens a WebSocket, or gives the answer that refuses it.
    pub(crate) async fn connect(self) -> Result<Socket, Reply> {
        let (client, server) = tokio::io::duplex(16 * 1024);
        let request = self
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let app = request.app;
        let request = request
            .request
            .extension(InProcessUpgrade::new(server))
            .body(request.body)
            .expect("a request");
        let response = app.router.oneshot(request).await.expect("infallible");
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            Ok(Socket::from_raw_socket(client, Role::Client, None).await)
        } else {
            Err(Reply::read(response).await)
        }
    }

    pub(crate) async fn refused_socket(self) -> Reply {
        self.connect().await.expect_err("a refused upgrade")
    }
}

impl Reply {
    async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a whole body");
        Self {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(bytes.to_vec()).expect("text"),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    pub(crate) fn detail(&self) -> String {
        let json = self.json();
        json["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// A refusal that promises that the handler has not run, and says when to come back (H3.12).
    #[track_caller]
    pub(crate) fn assert_refused(&self, detail: &str) {
        assert_eq!(
            self.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            self.body
        );
        assert_eq!(self.json(), serde_json::json!({ "detail": detail }));
        assert_eq!(self.header("retry-after"), Some("1"));
        assert!(self.headers.contains_key("pinned-refusal"));
    }

    #[track_caller]
    pub(crate) fn assert_ok(&self, body: &str) {
        assert_eq!((self.status, &*self.body), (StatusCode::OK, body));
        // H3.5
        assert!(!self.headers.contains_key("pinned-refusal"));
    }

    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, detail: &str) {
        assert_eq!(
            (self.status.as_u16(), self.detail()),
            (status, detail.to_owned())
        );
    }

    /// How a WebSocket that is closed before its acceptance looks on the wire.
    #[track_caller]
    pub(crate) fn assert_closed_before_acceptance(&self) {
        assert_eq!((self.status, &*self.body), (StatusCode::FORBIDDEN, ""));
    }
}

/// The next text frame.
pub(crate) async fn frame(socket: &mut Socket) -> String {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => text.to_string(),
        other => panic!("expected a text frame, got {other:?}"),
    }
}

/// The code and reason of the close frame that comes next.
pub(crate) async fn closed_with(socket: &mut Socket) -> (u16, String) {
    match socket.next().await {
        Some(Ok(Message::Close(Some(frame)))) => (frame.code.into(), frame.reason.to_string()),
        other => panic!("expected a close frame, got {other:?}"),
    }
}

/// Starts a task that stands for a client.
#[allow(
    clippy::disallowed_methods,
    reason = "clients are no part of the domain"
)]
pub(crate) fn spawn<F>(client: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(client)
}

/// Lets every other task run until all of them wait: the clock is paused, and moves only when nothing else can.
pub(crate) async fn settle() {
    pass(1).await;
}

/// Lets `millis` milliseconds of virtual time pass.
#[allow(clippy::disallowed_methods, reason = "tests move the paused clock")]
pub(crate) async fn pass(millis: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
}

/// A place where work waits until the test lets it on.
#[derive(Clone)]
pub(crate) struct Gate(Arc<GateState>);

struct GateState {
    waiting: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(GateState {
            waiting: watch::Sender::new(0),
            open: watch::Sender::new(false),
        }))
    }

    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        self.0.waiting.send_modify(|count| *count += 1);
        let mut open = self.0.open.subscribe();
        open.wait_for(|open| *open).await.expect("the gate is held");
    }

    /// Waits until `count` have come to the gate.
    pub(crate) async fn reached(&self, count: usize) {
        let mut waiting = self.0.waiting.subscribe();
        waiting
            .wait_for(|waiting| *waiting >= count)
            .await
            .expect("the gate is held");
    }

    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }
}

const SESSION: &str = "session-1";

/// A control plane that places every id here: it notes what is handed back, and may be slow to acknowledge it.
#[derive(Clone, Default)]
pub(crate) struct Board(Arc<BoardState>);

#[derive(Default)]
struct BoardState {
    released: Mutex<Vec<(String, Option<u64>)>>,
    gate: Mutex<Option<Gate>>,
}

impl Board {
    /// The releases so far: `<namespace>/<id>` and the epoch.
    pub(crate) fn released(&self) -> Vec<(String, Option<u64>)> {
        self.0.released.lock().clone()
    }

    /// Acknowledges releases only once `gate` is open.
    pub(crate) fn hold(&self, gate: &Gate) {
        *self.0.gate.lock() = Some(gate.clone());
    }
}

impl Placements for Board {
    fn release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        self.0
            .released
            .lock()
            .push((format!("{namespace}/{id}"), epoch));
        let gate = self.0.gate.lock().clone();
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Ok(())
        })
    }

    fn session_audience(&self) -> Option<Arc<str>> {
        Some(SESSION.into())
    }
}
