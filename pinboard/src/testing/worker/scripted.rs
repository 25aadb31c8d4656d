//! The worker.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pinned_domain::Domain;
use pinned_wire::registry::{HeartbeatAck, RegisterAck, Secret};
use tokio::net::TcpListener;

use super::InstanceKey;
use super::core::Core;
use super::knobs::Knobs;
use super::log::ActivationLog;
use super::options::WorkerOptions;
use super::registration::RegistryFailure;
use super::state::Phase;
use super::transport::{ByteStream, RegistryTransport};

/// A worker that does exactly what the wire says, and what a test tells it. Clones are the same worker.
///
/// It registers, keeps its session with heartbeats, proves its URL, checks attestations and epochs, serves under its lease,
/// obeys drains and control messages, lets go of duplicates, and hands back what it closes. Its instances do what a
/// [`WorkerHandler`](super::WorkerHandler) says, by default count.
///
/// It runs over any stream of bytes and any way to the registry, on the clock of its domain: in a simulation as well as over
/// TCP.
///
/// ```no_run
/// # use pinned_domain::Domain;
/// # use tokio::net::TcpListener;
/// use pinboard::testing::{HttpRegistry, ScriptedWorker, WorkerOptions};
///
/// # async fn run(pinboard: std::net::SocketAddr) -> std::io::Result<()> {
/// let domain = Domain::real();
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let url = format!("http://{}", listener.local_addr()?);
/// let registry = HttpRegistry::tcp(pinboard, "the worker's token", domain.clone());
/// let worker = ScriptedWorker::new(WorkerOptions::new("worker-1", url), registry, domain.clone());
///
/// worker.start();
/// domain.spawn({
///     let worker = worker.clone();
///     async move { worker.serve(listener).await }
/// });
/// worker.registered().await;
/// // ...
/// worker.shutdown().await;
/// worker.log().assert_no_overlap();
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ScriptedWorker {
    core: Arc<Core>,
}

impl ScriptedWorker {
    /// A worker that does nothing yet.
    #[must_use]
    pub fn new(options: WorkerOptions, registry: impl RegistryTransport, domain: Domain) -> Self {
        Self {
            core: Core::new(options, registry, domain),
        }
    }

    // --- By itself ---

    /// Has it do everything by itself from now on: register, send heartbeats, and close what is to be closed. To be called
    /// once, on its domain.
    pub fn start(&self) {
        self.keep();
        self.core.domain.spawn(Arc::clone(&self.core).run());
    }

    /// Has it close by itself what is to be closed, while the test registers and sends heartbeats. To be called once, in place
    /// of [`start`](Self::start).
    pub fn keep(&self) {
        self.core.domain.spawn(Arc::clone(&self.core).keep());
    }

    /// Waits until it is registered.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn registered(&self) {
        let core = &self.core;
        pinned_domain::until(&core.changed, || core.state.lock().session.is_some()).await;
    }

    // --- By hand ---

    /// Registers once, and does what the answer says.
    ///
    /// # Errors
    ///
    /// [`RegistryFailure`]
    ///
    /// # Cancel safety
    ///
    /// It may have registered, and not know it.
    pub async fn register(&self) -> Result<RegisterAck, RegistryFailure> {
        self.core.register().await
    }

    /// Sends one heartbeat, and does what the answer says; it does not register again by itself.
    ///
    /// # Errors
    ///
    /// [`RegistryFailure`]
    ///
    /// # Cancel safety
    ///
    /// The session may have been renewed, and messages are told again.
    pub async fn heartbeat(&self) -> Result<HeartbeatAck, RegistryFailure> {
        self.core.heartbeat().await
    }

    /// Ends its session.
    ///
    /// # Errors
    ///
    /// [`RegistryFailure`]
    ///
    /// # Cancel safety
    ///
    /// The session may have ended.
    pub async fn deregister(&self) -> Result<(), RegistryFailure> {
        self.core.deregister().await
    }

    // --- Serving ---

    /// Serves HTTP/1.1 over `stream` until either side ends it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the connection.
    pub async fn serve_connection(&self, stream: impl ByteStream) {
        if self.core.knobs.refuses_connections() || self.core.phase() == Phase::Crashed {
            return;
        }
        let dropped = self.core.knobs.dropped();
        let core = Arc::clone(&self.core);
        let service = service_fn(move |request| {
            let core = Arc::clone(&core);
            async move { Ok::<_, Infallible>(core.respond(request).await) }
        });
        let connection = http1::Builder::new()
            // There is no timer but the domain's.
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::select! {
            biased;
            () = dropped => {}
            () = self.core.over() => {}
            // Why a connection ended is the business of the other side.
            _ = connection => {}
        }
    }

    /// Serves what `listener` accepts, until the worker has stopped or crashed; after a crash nobody listens.
    ///
    /// # Errors
    ///
    /// The listener fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the listener; connections go on.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted?,
                () = self.core.over() => return Ok(()),
            };
            let worker = self.clone();
            self.core
                .domain
                .spawn(async move { worker.serve_connection(stream).await });
        }
    }

    // --- The end ---

    /// Drains it: nothing new is activated, what is idle closes, and all is aborted when `deadline` has passed; `None` never
    /// aborts. The registry is told with the next heartbeat, at once when it runs by itself.
    pub fn drain(&self, deadline: Option<Duration>) {
        let now = self.core.clock.now();
        let deadline = deadline.map(|after| pinned_domain::saturating_add(now, after));
        self.core.state.lock().own_drain = Some(deadline);
        self.core.changed.notify_waiters();
    }

    /// Takes its drain back.
    pub fn undrain(&self) {
        self.core.state.lock().own_drain = None;
        self.core.changed.notify_waiters();
    }

    /// Waits until nothing lives in it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn is_empty(&self) {
        self.core.is_empty().await;
    }

    /// Aborts one instance, and waits until it has handed its placement back; whether it was there.
    ///
    /// # Cancel safety
    ///
    /// The instance is closing.
    pub async fn abort(&self, key: &InstanceKey) -> bool {
        let now = self.core.now();
        let closing = self.core.state.lock().close(key, true, now);
        match closing {
            Some(closing) => {
                self.core.finish(closing).await;
                true
            }
            None => false,
        }
    }

    /// Stops it in good order: aborts what lives, hands all of it back, and ends the session.
    ///
    /// # Cancel safety
    ///
    /// It stops as far as it has come.
    pub async fn shutdown(&self) {
        self.drain(Some(Duration::ZERO));
        let closing = {
            let now = self.core.now();
            self.core.state.lock().close_all(now)
        };
        self.core.finish_all(closing);
        self.core.is_empty().await;
        self.core.flush().await;
        // It ends with its lease when the registry does not answer.
        let _ = self.core.deregister().await;
        self.core.state.lock().phase = Phase::Stopped;
        self.core.changed.notify_waiters();
    }

    /// Ends it here and now, as a process that is killed: connections drop, nothing is handed back, and nobody is told.
    pub fn crash(&self) {
        let now = self.core.now();
        self.core.state.lock().crash(now);
        self.core.changed.notify_waiters();
    }

    // --- What there is ---

    /// What a test can do to it.
    #[must_use]
    pub fn knobs(&self) -> &Knobs {
        &self.core.knobs
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> &ActivationLog {
        &self.core.options.log
    }

    /// Its client id.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.core.client_id
    }

    /// Its secret: the key of attestations.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.core.secret
    }

    /// Its session, when it has one.
    #[must_use]
    pub fn session(&self) -> Option<Arc<str>> {
        self.core.state.lock().session.clone()
    }

    /// The instances that live in it, those that are closing included.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceKey> {
        self.core.state.lock().records.keys().cloned().collect()
    }

    /// Whether an operator, or the worker itself, has it drain.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.core.state.lock().is_draining()
    }

    /// Whether its lease has passed, by its own clock.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        let now = self.core.clock.now();
        self.core.state.lock().lease.is_expired(now)
    }

    /// Whether another worker has displaced it.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        self.core.phase() == Phase::Superseded
    }
}

impl fmt::Debug for ScriptedWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.core.state.lock();
        f.debug_struct("ScriptedWorker")
            .field("name", &self.core.options.name)
            .field("phase", &state.phase)
            .field("session", &state.session)
            .field("instances", &state.records.len())
            .finish_non_exhaustive()
    }
}
