//! What the tests of handlers, turns, streams and sockets stand on: a worker in this process, a probe that its handlers
//! report to, and clients.

use std::collections::HashSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pinned::domain::{Domain, TaskHandle};
use pinned::{HostOptions, PinnedApi, PinnedHost, PinnedWorker, WorkerBuilder};
use pinned_testing::{
    BodyError, BodyReader, ScriptedPlacements, TestApp, TestClient, TestRequest, TestResponse,
    TestSocket,
};
use tokio::sync::Notify;

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

// ===== the app =====

/// A worker that runs, and clients of it.
pub(crate) struct App {
    pub(crate) probe: Probe,
    app: TestApp,
    client: TestClient,
    placements: Option<Arc<ScriptedPlacements>>,
}

impl App {
    /// `T` under `/t`, with `options`.
    pub(crate) async fn with<T: PinnedApi>(options: HostOptions) -> Self {
        Self::start(
            PinnedWorker::builder().host_with::<T>(options.namespace("/t")),
            None,
        )
        .await
    }

    pub(crate) async fn of<T: PinnedApi>() -> Self {
        Self::with::<T>(HostOptions::new()).await
    }

    /// As [`App::with`], behind a control plane.
    pub(crate) async fn placed<T: PinnedApi>(options: HostOptions) -> Self {
        let placements = ScriptedPlacements::new();
        let builder = PinnedWorker::builder()
            .host_with::<T>(options.namespace("/t"))
            .placements(Arc::clone(&placements) as _);
        Self::start(builder, Some(placements)).await
    }

    async fn start(builder: WorkerBuilder, placements: Option<Arc<ScriptedPlacements>>) -> Self {
        let probe = Probe::default();
        let started = TestApp::start(builder.state(probe.clone())).await;
        let app = started.expect("a worker that starts");
        Self {
            probe,
            client: app.client(),
            app,
            placements,
        }
    }

    /// The control plane of [`App::placed`].
    pub(crate) fn placements(&self) -> &ScriptedPlacements {
        self.placements.as_deref().expect("a placed app")
    }

    pub(crate) fn host<T: PinnedApi>(&self) -> PinnedHost<T> {
        self.app.host::<T>()
    }

    pub(crate) fn worker(&self) -> &PinnedWorker {
        self.app.worker()
    }

    pub(crate) async fn shutdown(self) {
        bounded(self.app.shutdown()).await.expect("a clean end");
    }

    /// The whole answer to a `GET`.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> impl Future<Output = Answer> + Send + 'static {
        Answer::to(self.client.get(path))
    }

    /// As [`App::get`], with a placement epoch.
    #[track_caller]
    pub(crate) fn get_at(&self, path: &str, epoch: u64) -> impl Future<Output = Answer> + Send {
        Answer::to(
            self.client
                .get(path)
                .header(pinned::wire::headers::EPOCH, epoch),
        )
    }

    /// A client that asks in a task of its own. Aborting the task is its disconnect.
    #[track_caller]
    pub(crate) fn client(&self, path: &str) -> Client {
        Client(domain().spawn(self.get(path)))
    }

    /// The body of a streaming answer.
    #[track_caller]
    pub(crate) fn stream(&self, path: &str) -> impl Future<Output = Stream> + Send + 'static {
        let stream = self.try_stream(path);
        async move { stream.await.expect("a stream") }
    }

    /// The body of a streaming answer, or the answer that was given instead.
    #[track_caller]
    pub(crate) fn try_stream(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Stream, Answer>> + Send + 'static {
        let response = bounded(self.client.get(path).send());
        async move {
            let response = response.await;
            match response.status() {
                StatusCode::OK => Ok(Stream(response.body())),
                _ => Err(Answer::of(response).await),
            }
        }
    }

    /// A WebSocket, or the answer that was given instead.
    #[track_caller]
    pub(crate) fn socket(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Socket, Answer>> + Send + 'static {
        let opening = bounded(self.client.websocket(path).into_future());
        async move {
            match opening.await {
                Ok(socket) => Ok(Socket(socket)),
                Err(response) => Err(Answer::of(response).await),
            }
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
    #[track_caller]
    fn to(request: TestRequest) -> impl Future<Output = Self> + Send + 'static {
        bounded(async move { Self::of(request.send().await).await })
    }

    async fn of(response: TestResponse) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: bounded(response.text()).await,
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

/// A streaming body. Dropping it is its client's disconnect.
#[derive(Debug)]
pub(crate) struct Stream(BodyReader);

impl Stream {
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.0.try_next_chunk(TOO_LONG).await
    }

    pub(crate) async fn text(&mut self) -> String {
        let chunk = self.0.next_chunk(TOO_LONG).await.expect("a chunk");
        String::from_utf8(chunk.into()).expect("text")
    }

    /// Asserts that the body ends here, and cleanly.
    pub(crate) async fn assert_end(&mut self) {
        let next = self.next().await.expect("no error");
        assert_eq!(next, None);
    }

    /// Asserts that neither a chunk nor an end comes within a millisecond.
    pub(crate) async fn assert_open(&mut self) {
        let next = self.0.try_next_chunk(millis(1)).await;
        assert!(matches!(next, Err(BodyError::TimedOut(_))), "{next:?}");
    }
}

/// The client's end of a WebSocket. Dropping it is its disconnect.
#[derive(Debug)]
pub(crate) struct Socket(TestSocket);

impl Socket {
    pub(crate) async fn say(&mut self, text: &str) {
        bounded(self.0.send_text(text)).await.expect("sent");
    }

    pub(crate) async fn text(&mut self) -> String {
        bounded(self.0.recv_text()).await.expect("a text")
    }

    /// The code and reason of the close frame that comes next.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        bounded(self.0.recv_close()).await
    }

    /// Is gone without a word, not even from its connection.
    pub(crate) fn vanish(self) {
        self.0.vanish();
    }

    /// Says something, and looks at what comes next, for at most a tenth of a second.
    pub(crate) async fn provoke(&mut self) {
        let answered = async {
            // The other end may be gone.
            let _ = self.0.send_text("x").await;
            self.0.recv().await
        };
        let _ = domain().timeout(millis(100), answered).await;
    }

    /// Asserts that nothing comes within a millisecond.
    pub(crate) async fn assert_open(&mut self) {
        let next = domain().timeout(millis(1), self.0.recv()).await;
        assert!(next.is_err(), "{next:?}");
    }
}
