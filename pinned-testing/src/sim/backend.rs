//! The simulation as a domain.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use pinned::domain::{DomainBackend, Rng, SpawnedTask};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::sleep::Sleep;
use super::world::{CURRENT, World};

pub(super) struct Backend(pub(super) Arc<World>);

struct Task(AbortHandle);

impl DomainBackend for Backend {
    fn now(&self) -> SystemTime {
        self.0.options.wall_epoch + self.0.now()
    }

    fn monotonic(&self) -> Instant {
        self.0.start + self.0.now()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let at = at.saturating_duration_since(self.0.start);
        Box::pin(Sleep::new(Arc::clone(&self.0), at))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Box<dyn SpawnedTask> {
        let living = self.0.enlist();
        let task = CURRENT.scope(living.id, async move {
            // Owned by the task: it lives as long as this.
            let _living = living;
            task.await;
        });
        Box::new(Task(self.0.runtime.spawn(task).abort_handle()))
    }

    fn rng(&self, label: &str) -> Rng {
        self.0.rng(label)
    }

    fn fill_token(&self, token: &mut [u8]) {
        self.0.fill_token(token);
    }
}

impl SpawnedTask for Task {
    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}
