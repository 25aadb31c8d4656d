//! Starting and stopping a worker's hosts.

use std::fmt;

use super::PinnedWorker;
use crate::error::{Error, Result};

/// A worker whose hosts run. Dropping it aborts every instance without waiting; [`RunningWorker::shutdown`] waits.
#[must_use = "dropping it aborts every instance"]
pub struct RunningWorker {
    worker: PinnedWorker,
    stopped: bool,
}

impl PinnedWorker {
    /// Starts the hosts, for a program that serves [`PinnedWorker::into_router`] itself.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyStarted`]; what runs is not disturbed (H11.14).
    pub async fn run_lifespan(&self) -> Result<RunningWorker> {
        for host in self.each_host() {
            host.start()?;
        }
        if self.core.env.placements.is_none() {
            tracing::warn!(
                target: "pinned::worker",
                "DEV MODE: no control plane; nothing keeps a second worker from serving the same ids"
            );
        }
        Ok(RunningWorker {
            worker: self.clone(),
            stopped: false,
        })
    }

    /// Aborts every instance, without waiting.
    pub fn abort_all(&self) {
        for host in self.each_host() {
            host.abort_all();
        }
    }
}

impl RunningWorker {
    /// The worker.
    pub fn worker(&self) -> &PinnedWorker {
        &self.worker
    }

    /// Closes every instance, in order, and waits until nothing of any is left (H11.11).
    ///
    /// # Errors
    ///
    /// [`Error::Shutdown`] when instances panicked on the way; all phases ran.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the closes go on.
    pub async fn shutdown(mut self) -> Result<()> {
        self.stopped = true;
        let mut failures = Vec::new();
        for host in self.worker.each_host() {
            host.stop_service();
        }
        for host in self.worker.each_host() {
            let closing = std::sync::Arc::clone(host);
            let closed = self.worker.core.env.domain.spawn(async move { closing.close_all().await });
            if let Err(error) = closed.await {
                metrics::counter!("pinned_shutdown_failures_total", "phase" => "directory").increment(1);
                tracing::error!(
                    target: "pinned::worker",
                    namespace = &*host.namespace,
                    %error,
                    "a host could not be closed"
                );
                failures.push(format!("{}: {error}", host.namespace));
            }
        }
        self.worker.core.env.lease.close();
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Error::Shutdown(failures))
        }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        if !self.stopped {
            for host in self.worker.each_host() {
                host.stop_service();
                host.abort_all();
            }
        }
    }
}

impl fmt::Debug for RunningWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningWorker").field(&self.worker).finish()
    }
}
