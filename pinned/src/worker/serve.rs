//! Serving a worker: listen, answer, drain, exit.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::service::WorkerService;
use super::signals::Terminations;
use super::{PinnedWorker, banner};
use crate::error::{Error, Result};

/// How long a client may take to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// How long connections may take to end after the last instance is gone.
const GOODBYE: Duration = Duration::from_secs(5);

/// How long to leave the listener alone after it failed to accept: the process is out of files, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl PinnedWorker {
    /// Serves until SIGTERM or SIGINT, then drains, and returns once nothing is left.
    ///
    /// It binds, says on standard error what it serves and where, and answers the namespaces, `/readyz`, `/livez`,
    /// `/_pinned/stats` and what was merged in. On the first signal it refuses new activations, lets running work end
    /// until the drain deadline, closes every instance (streams and sockets end after that), tells connections
    /// about the end and returns. A second signal ends the process at once, with status 128 plus its number.
    ///
    /// # Errors
    ///
    /// [`Error::Bind`] when the address cannot be had, [`Error::AlreadyStarted`], [`Error::Shutdown`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops serving and aborts every instance.
    pub async fn serve(self) -> Result<()> {
        let address = self.core.settings.address;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| Error::Bind {
                address: address.to_string(),
                source,
            })?;
        self.serve_on(listener).await
    }

    /// As [`PinnedWorker::serve`], on a listener that is bound already.
    ///
    /// # Errors
    ///
    /// As [`PinnedWorker::serve`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops serving and aborts every instance.
    pub async fn serve_on(self, listener: TcpListener) -> Result<()> {
        let mut signals = Terminations::listen().map_err(|source| Error::Bind {
            address: "SIGTERM and SIGINT".to_owned(),
            source,
        })?;
        let running = self.run_lifespan().await?;
        banner::show(&self, listener.local_addr().ok());
        let connections = Connections::new(&self);
        let until_drained = async {
            signals.next().await;
            self.end_at_next(signals);
            self.drain(Some(self.core.settings.drain_deadline)).await;
        };
        tokio::select! {
            never = connections.accept_all(&listener) => match never {},
            () = until_drained => {}
        }
        drop(listener);
        // Connections first: a request that races the end hears that the host drains, not that it is gone.
        connections.say_goodbye(&self).await;
        running.shutdown().await
    }

    /// A second signal ends the process, whatever it is doing.
    fn end_at_next(&self, mut signals: Terminations) {
        self.core.env.domain.spawn(async move {
            let number = signals.next().await;
            tracing::warn!(target: "pinned::worker", "a second signal; ending at once");
            std::process::exit(128 + number);
        });
    }
}

/// The connections of a server.
struct Connections {
    worker: PinnedWorker,
    service: WorkerService,
    http: Arc<auto::Builder<TokioExecutor>>,
    graceful: GracefulShutdown,
}

impl Connections {
    fn new(worker: &PinnedWorker) -> Self {
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE);
        http.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .enable_connect_protocol();
        Self {
            worker: worker.clone(),
            service: WorkerService::new(worker),
            http: Arc::new(http),
            graceful: GracefulShutdown::new(),
        }
    }

    async fn accept_all(&self, listener: &TcpListener) -> Infallible {
        let domain = self.worker.domain();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream),
                Err(error) => {
                    tracing::warn!(target: "pinned::worker", %error, "cannot accept a connection");
                    domain.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream) {
        // Answers are small and whole; waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let service = self.service.clone();
        let http = Arc::clone(&self.http);
        let watcher = self.graceful.watcher();
        self.worker.domain().spawn(async move {
            let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
            // A connection that breaks off is its client's affair; its handlers run to their ends.
            let _ = watcher.watch(connection).await;
        });
    }

    async fn say_goodbye(self, worker: &PinnedWorker) {
        let goodbye = self.graceful.shutdown();
        if worker.domain().timeout(GOODBYE, goodbye).await.is_err() {
            tracing::warn!(target: "pinned::worker", "connections were left open");
        }
    }
}
