//! Serving a worker: listen, answer, drain, exit.

use std::time::Duration;

use tokio::net::TcpListener;

use super::connections::Connections;
use super::service::WorkerService;
use super::signals::Terminations;
use super::{PinnedWorker, banner};
use crate::error::{Error, Result};

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
    /// [`Error::Bind`] when an address is taken or not allowed, [`Error::Signals`] when the process may not listen for
    /// signals, [`Error::AlreadyStarted`], and [`Error::Shutdown`] when durable effects of instances could not be
    /// confirmed.
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
        let signals = Terminations::listen().map_err(Error::Signals)?;
        let service = WorkerService::new(&self);
        let running = self.run_asking(service.clone()).await?;
        let probes = running.probe_address();
        banner::show(&self, listener.local_addr().ok(), probes);
        let connections = Connections::new(service, self.domain().clone());
        tokio::select! {
            () = self.accept_all(&listener, &connections) => {}
            () = connections.watch() => {}
            () = self.core.fleet.tell() => {}
            () = self.drain_at_signal(signals) => {}
        }
        drop(listener);
        // Connections first: a request that races the end hears that the host drains, not that it is gone.
        connections.say_goodbye(GOODBYE).await;
        running.shutdown().await
    }

    /// Accepts for as long as it is polled.
    async fn accept_all(&self, listener: &TcpListener, connections: &Connections) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => connections.serve(stream),
                Err(error) => {
                    tracing::warn!(target: "pinned::worker", %error, "cannot accept a connection");
                    self.domain().sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}
