//! What the tests of handlers, turns, streams and sockets stand on: a worker in this process, a probe that its handlers
//! report to, and clients.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use pinned::domain::{Domain, TaskHandle};
use pinned::wire::attestation::{Claims, mint};
use pinned::ws::InProcessUpgrade;
use pinned::{
    BoxError, HostOptions, PinnedApi, PinnedHost, PinnedWorker, Placements, RunningWorker,
    WorkerBuilder,
};
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tower::ServiceExt;

/// No wait of a test takes longer, on a paused clock: what hangs fails.
const TOO_LONG: Duration = Duration::from_secs(3 * 24 * 60 * 60);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn domain() -> Domain {
    Domain::real()
}

/// Moves a paused clock.
pub(crate) async fn pass(time: Duration) {
    domain().sleep(time).await;
}

/// Lets every other task run until all of them wait: a paused clock moves only then.
pub(crate) async fn settle() {
    pass(Duration::from_nanos(1)).await;
}

/// Fails the test instead of waiting for ever.
#[track_caller]
pub(crate) fn bounded<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match domain().timeout(TOO_LONG, future).await {
            Ok(output) => output,
            Err(_) => panic!("this wait would never end: {caller}"),
        }
    }
}

// ===== the probe =====

/// What handlers report to, and where they wait to be let on. Given to the worker as state.
#[derive(Clone, Default)]
pub(crate) struct Probe(Arc<Inner>);

#[derive(Default)]
struct Inner {
    events: Mutex<Vec<String>>,
    open: Mutex<HashSet<String>>,
    changed: Notify,
}

/// Notes an event when it is dropped.
pub(crate) struct Cleanup(Probe, String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.note(self.1.clone());
    }
}

impl Probe {
    pub(crate) fn note(&self, event: impl Into<String>) {
        self.0.events.lock().push(event.into());
        self.0.changed.notify_waiters();
    }

    /// Notes `event` when what comes back is dropped.
    pub(crate) fn cleanup(&self, event: impl Into<String>) -> Cleanup {
        Cleanup(self.clone(), event.into())
    }

    /// Notes `at <gate>` and waits until the gate is opened.
    pub(crate) async fn gate(&self, gate: &str) {
        self.note(format!("at {gate}"));
        self.until(|| self.0.open.lock().contains(gate)).await;
    }

    pub(crate) fn open(&self, gate: &str) {
        self.0.open.lock().insert(gate.to_owned());
        self.0.changed.notify_waiters();
    }

    pub(crate) fn is_open(&self, gate: &str) -> bool {
        self.0.open.lock().contains(gate)
    }

    pub(crate) fn shut(&self, gate: &str) {
        self.0.open.lock().remove(gate);
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.0.events.lock().clone()
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.0
            .events
            .lock()
            .iter()
            .filter(|noted| *noted == event)
            .count()
    }

    pub(crate) fn has(&self, event: &str) -> bool {
        self.count(event) > 0
    }

    /// Waits until `event` has been noted.
    #[track_caller]
    pub(crate) fn seen(&self, event: &str) -> impl Future<Output = ()> {
        self.seen_times(event, 1)
    }

    /// Waits until `event` has been noted `times` times.
    #[track_caller]
    pub(crate) fn seen_times(&self, event: &str, times: usize) -> impl Future<Output = ()> {
        let (probe, event) = (self.clone(), event.to_owned());
        bounded(async move { probe.until(|| probe.count(&event) >= times).await })
    }

    /// Where the first `event` stands among all that were noted.
    #[track_caller]
    pub(crate) fn index(&self, event: &str) -> usize {
        let events = self.events();
        match events.iter().position(|noted| noted == event) {
            Some(index) => index,
            None => panic!("{event:?} was not noted: {events:?}"),
        }
    }

    async fn until(&self, mut done: impl FnMut() -> bool) {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if done() {
                return;
            }
            changed.await;
        }
    }
}

// ===== the control plane =====

/// A control plane that notes every release in the probe as `release <id>`, passes the gate `release`, and then notes
/// `released <id>`.
pub(crate) struct Board(pub(crate) Probe);

pub(crate) const SESSION: &str = "session-1";

impl Placements for Board {
    fn release(
        &self,
        _namespace: &str,
        id: &str,
        _epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let (probe, id) = (self.0.clone(), id.to_owned());
        Box::pin(async move {
            probe.note(format!("release {id}"));
            probe.gate("release").await;
            probe.note(format!("released {id}"));
            Ok(())
        })
    }

    fn session_audience(&self) -> Option<String> {
        Some(SESSION.to_owned())
    }
}

// ===== the app =====

/// A worker that runs, and the router in front of it.
pub(crate) struct App {
    pub(crate) probe: Probe,
    running: RunningWorker,
    router: Router,
    headers: HeaderMap,
}

impl App {
    /// `T` under `/t`, with `options`.
    pub(crate) async fn with<T: PinnedApi>(options: HostOptions) -> Self {
        let probe = Probe::default();
        let builder = PinnedWorker::builder().host_with::<T>(options.namespace("/t"));
        Self::start(builder, probe, false).await
    }

    pub(crate) async fn of<T: PinnedApi>() -> Self {
        Self::with::<T>(HostOptions::new()).await
    }

    /// As [`App::with`], behind a control plane.
    pub(crate) async fn placed<T: PinnedApi>(options: HostOptions) -> Self {
        let probe = Probe::default();
        let builder = PinnedWorker::builder()
            .host_with::<T>(options.namespace("/t"))
            .placements(Arc::new(Board(probe.clone())));
        Self::start(builder, probe, true).await
    }

    pub(crate) async fn start(builder: WorkerBuilder, probe: Probe, placed: bool) -> Self {
        let worker = builder.state(probe.clone()).build().expect("a worker");
        let running = worker.run_lifespan().await.expect("not started yet");
        let mut headers = HeaderMap::new();
        if placed {
            let token = mint(worker.secret(), &Claims::new(SESSION, domain().now()));
            headers.insert(
                pinned::wire::headers::ATTESTATION,
                token.parse().expect("a header value"),
            );
        }
        Self {
            probe,
            router: worker.into_router(),
            running,
            headers,
        }
    }

    pub(crate) fn host<T: PinnedApi>(&self) -> PinnedHost<T> {
        self.running.worker().hosted::<T>().expect("hosted")
    }

    pub(crate) fn worker(&self) -> &PinnedWorker {
        self.running.worker()
    }

    pub(crate) async fn shutdown(self) {
        bounded(self.running.shutdown()).await.expect("a clean end");
    }

    /// The answer's head, as soon as it is there.
    #[track_caller]
    pub(crate) fn send(
        &self,
        mut request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        let router = self.router.clone();
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        bounded(async move { router.oneshot(request).await.expect("infallible") })
    }

    /// The whole answer to a `GET`.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> impl Future<Output = Answer> + Send + 'static {
        let response = self.send(get(path));
        async move { Answer::of(response.await).await }
    }

    /// As [`App::get`], with a placement epoch.
    #[track_caller]
    pub(crate) fn get_at(&self, path: &str, epoch: u64) -> impl Future<Output = Answer> + Send {
        let mut request = get(path);
        request
            .headers_mut()
            .insert(pinned::wire::headers::EPOCH, epoch.into());
        let response = self.send(request);
        async move { Answer::of(response.await).await }
    }

    /// A client that asks in a task of its own. Aborting the task is its disconnect.
    #[track_caller]
    pub(crate) fn client(&self, path: &str) -> Client {
        Client(domain().spawn(self.get(path)))
    }

    /// The body of a streaming answer.
    #[track_caller]
    pub(crate) fn stream(&self, path: &str) -> impl Future<Output = Stream> + Send + 'static {
        let response = self.send(get(path));
        async move {
            let response = response.await;
            assert_eq!(response.status(), StatusCode::OK);
            Stream(response.into_body())
        }
    }

    /// A WebSocket, or the answer that was given instead.
    #[track_caller]
    pub(crate) fn socket(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Socket, Answer>> + Send + 'static {
        let (connection, server) = tokio::io::duplex(4 * 1024);
        let request = Request::builder()
            .uri(path)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .extension(InProcessUpgrade::new(server))
            .body(Body::empty())
            .expect("a request");
        let response = self.send(request);
        async move {
            let response = response.await;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Err(Answer::of(response).await);
            }
            let config = WebSocketConfig::default().write_buffer_size(0);
            let socket =
                WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await;
            Ok(Socket(socket))
        }
    }

    /// Waits until no instance is left.
    #[track_caller]
    pub(crate) fn empty<T: PinnedApi>(&self) -> impl Future<Output = ()> + 'static {
        let host = self.host::<T>();
        bounded(async move {
            while !host.is_empty() {
                pass(millis(10)).await;
            }
        })
    }
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

// ===== clients =====

/// A client in a task of its own.
pub(crate) struct Client(TaskHandle<Answer>);

impl Client {
    #[track_caller]
    pub(crate) fn answer(self) -> impl Future<Output = Answer> {
        bounded(async move { self.0.await.expect("the client did not panic") })
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.0.is_finished()
    }

    /// Goes away.
    pub(crate) fn hang_up(self) {
        self.0.abort();
    }

    /// Goes away, and waits until that is noticed.
    pub(crate) async fn leave(self) {
        self.0.abort();
        let _ = self.0.await;
        settle().await;
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = bounded(body.collect())
            .await
            .expect("a whole body")
            .to_bytes();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.into()).expect("text"),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// 200 with this text.
    #[track_caller]
    pub(crate) fn assert_ok(&self, text: &str) {
        assert_eq!((self.status, self.text.as_str()), (200, text), "{self:?}");
    }

    /// A refusal that means 'not run, try again' (H3.12, H3.13).
    #[track_caller]
    pub(crate) fn assert_retry(&self, detail: &str) {
        self.assert_detail(503, detail);
        assert_eq!(self.header("retry-after"), Some("1"), "{self:?}");
        assert!(self.header("pinned-refusal").is_some(), "{self:?}");
    }

    /// 503 `instance aborted`, which promises nothing (H5.3).
    #[track_caller]
    pub(crate) fn assert_aborted(&self) {
        self.assert_detail(503, "instance aborted");
        assert_eq!(self.header("retry-after"), None, "{self:?}");
        assert_eq!(self.header("pinned-refusal"), None, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn assert_detail(&self, status: u16, detail: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let body: serde_json::Value = serde_json::from_str(&self.text).expect("JSON");
        assert_eq!(body, serde_json::json!({ "detail": detail }));
    }
}

/// A streaming body.
pub(crate) struct Stream(Body);

impl Stream {
    /// The next chunk, `None` at a clean end.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        let frame = bounded(self.0.frame()).await?;
        Some(frame.map(|frame| frame.into_data().expect("data")))
    }

    pub(crate) async fn text(&mut self) -> String {
        let chunk = self.next().await.expect("a chunk").expect("no error");
        String::from_utf8(chunk.into()).expect("text")
    }

    /// Asserts that the body ends here, and cleanly.
    pub(crate) async fn assert_end(&mut self) {
        let next = self.next().await;
        assert!(next.is_none(), "{next:?}");
    }
}

/// The client's end of a WebSocket.
pub(crate) struct Socket(WebSocketStream<DuplexStream>);

impl Socket {
    pub(crate) async fn say(&mut self, text: &str) {
        use futures_util::SinkExt;
        bounded(self.0.send(text.into())).await.expect("sent");
    }

    pub(crate) async fn next(&mut self) -> Option<Message> {
        bounded(self.0.next()).await?.ok()
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("expected text, got {other:?}"),
        }
    }

    /// The code and reason of the close frame that comes next.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        match self.next().await {
            Some(Message::Close(Some(frame))) => (frame.code.into(), frame.reason.to_string()),
            other => panic!("expected a close frame, got {other:?}"),
        }
    }
}
