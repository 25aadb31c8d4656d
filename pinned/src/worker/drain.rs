//! Draining a worker (H10.4, H10.12, W13.1).

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::PinnedWorker;
use super::signals::Terminations;
use crate::domain::{TaskHandle, saturating_add};
use crate::error::{Error, Result};
use crate::host::wind_down::{DrainSource, WindDown};

/// Ends once a termination signal has come and the worker has drained, or once its drain was revoked. Dropping it leaves the worker
/// listening.
pub struct SigtermDrain(TaskHandle<()>);

impl Future for SigtermDrain {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // It ends early only with its runtime, and then there is nothing to wait for either.
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}

impl fmt::Debug for SigtermDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigtermDrain").field(&self.0).finish()
    }
}

impl PinnedWorker {
    /// Drains on SIGTERM or SIGINT, for a program that serves [`PinnedWorker::into_router`] itself: what is left
    /// [`WorkerBuilder::drain_deadline`](crate::WorkerBuilder::drain_deadline) after the signal is cut off (W13.2).
    ///
    /// The process is not ended, unless a second signal comes, which ends it at once. Other listeners for these signals hear them too.
    ///
    /// ```no_run
    /// # use pinned::PinnedWorker;
    /// # async fn demo(worker: PinnedWorker) -> Result<(), Box<dyn std::error::Error>> {
    /// let running = worker.run_lifespan().await?;
    /// let drained = worker.install_sigterm_drain()?;
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    /// let app = axum::Router::new().merge(worker.into_router()).merge(worker.probes());
    /// axum::serve(listener, app).with_graceful_shutdown(drained).await?;
    /// running.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] when the process may not listen for signals.
    pub fn install_sigterm_drain(&self) -> Result<SigtermDrain> {
        let signals = Terminations::listen().map_err(Error::Signals)?;
        let worker = self.clone();
        let drained = async move { worker.drain_at_signal(signals).await };
        Ok(SigtermDrain(self.domain().spawn(drained)))
    }

    /// Waits for a signal, and then until nothing is left.
    pub(super) async fn drain_at_signal(&self, mut signals: Terminations) {
        signals.next().await;
        self.end_at_next(signals);
        self.drain(Some(self.core.settings.drain_deadline)).await;
    }

    /// A second signal ends the process, whatever it is doing.
    fn end_at_next(&self, mut signals: Terminations) {
        self.core.env.domain.spawn(async move {
            let number = signals.next().await;
            tracing::warn!(target: "pinned::worker", "a second signal; ending at once");
            std::process::exit(128 + number);
        });
    }

    /// Drains every host: no new activations, idle instances close now, busy ones when they are done, and what is left
    /// at `deadline` from now is cut off; `None` never cuts off. Resolves once nothing is left, or the drain is revoked.
    ///
    /// The latest call replaces the deadline of the one before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the drain goes on until [`PinnedWorker::revoke_drain`].
    pub async fn drain(&self, deadline: Option<Duration>) {
        let now = self.core.env.domain.monotonic();
        let drain = WindDown {
            deadline: deadline.map(|after| saturating_add(now, after)),
        };
        tracing::info!(target: "pinned::worker", ?deadline, "drain begun");
        self.apply_drain(DrainSource::Host, Some(drain));
        self.core.fleet.set_draining(true);
        for host in self.each_host() {
            host.wait_drained().await;
        }
        if self.is_drained() {
            tracing::info!(target: "pinned::worker", "drain complete");
        }
    }

    /// Lifts the drain: new activations are admitted again. Instances that were closed stay closed.
    pub fn revoke_drain(&self) {
        tracing::info!(target: "pinned::worker", "drain revoked");
        self.apply_drain(DrainSource::Host, None);
        self.core.fleet.set_draining(false);
    }

    fn apply_drain(&self, source: DrainSource, drain: Option<WindDown>) {
        let core = &self.core;
        core.hosts.apply_drain(source, drain, &core.env.lease);
    }

    /// The drain that a control plane asks for, in its own slot beside [`PinnedWorker::drain`]; each one's end leaves
    /// the other in force (H10.4). The seam through which a test
    /// stands in for one.
    #[doc(hidden)]
    pub fn server_drain(&self, drain: Option<Option<Duration>>) {
        let now = self.core.env.domain.monotonic();
        let asked = drain.map(|deadline| WindDown {
            deadline: deadline.map(|after| saturating_add(now, after)),
        });
        let news = if asked.is_some() { "begun" } else { "revoked" };
        tracing::info!(target: "pinned::worker", deadline = ?drain.flatten(), "server drain {news}");
        self.apply_drain(DrainSource::Server, asked);
    }

    /// Whether any host drains.
    pub fn is_draining(&self) -> bool {
        self.each_host().any(|host| host.is_draining())
    }

    /// Draining, and no instance is left anywhere.
    pub fn is_drained(&self) -> bool {
        self.is_draining() && self.each_host().all(|host| host.is_empty())
    }
}
