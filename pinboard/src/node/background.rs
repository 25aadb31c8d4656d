//! What a node does besides answering.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::{Domain, TaskError, TaskHandle};

/// How long after a fault a task begins again.
const PAUSE: Duration = Duration::from_secs(1);

/// Tasks that run for as long as the node does; dropping it ends them.
pub(super) struct Background {
    domain: Domain,
    tasks: Mutex<Vec<TaskHandle<()>>>,
}

impl Background {
    pub(super) fn new(domain: Domain) -> Self {
        Self {
            domain,
            tasks: Mutex::new(Vec::new()),
        }
    }

    /// Runs what `task` makes, and again should it panic: one fault must not silently end what the rest of the node relies on.
    pub(super) fn keep<F>(&self, name: &'static str, task: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = Infallible> + Send + 'static,
    {
        let domain = self.domain.clone();
        let kept = self.domain.spawn(async move {
            loop {
                // Ends with the supervisor, too.
                let running = Aborting(domain.spawn(task()));
                match running.ended().await {
                    TaskError::Panicked { message, .. } => {
                        tracing::error!(
                            task = name,
                            message,
                            "a task of the node panicked; it begins again"
                        );
                    }
                    // The runtime is going away.
                    _ => return,
                }
                domain.sleep(PAUSE).await;
            }
        });
        self.tasks.lock().push(kept);
    }

    /// Runs `task` until it ends, or the node does.
    pub(super) fn once(&self, task: impl Future<Output = ()> + Send + 'static) {
        let once = self.domain.spawn(task);
        self.tasks.lock().push(once);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for task in self.tasks.get_mut() {
            task.abort();
        }
    }
}

/// Aborts its task when it is dropped.
struct Aborting(TaskHandle<Infallible>);

impl Aborting {
    async fn ended(mut self) -> TaskError {
        match (&mut self.0).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
