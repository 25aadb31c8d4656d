//! The simulation as a domain.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use pinned::domain::{DomainBackend, Rng, SpawnedTask};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::process::{Life, Mortal};
use super::sleep::Sleep;
use super::world::{CURRENT, World};

/// The whole world, or the view of it that one life of a process has.
pub(super) struct Backend {
    world: Arc<World>,
    life: Option<Arc<Life>>,
}

struct Task {
    task: AbortHandle,
    life: Option<Arc<Life>>,
}

impl Backend {
    pub(super) fn new(world: Arc<World>, life: Option<Arc<Life>>) -> Self {
        Self { world, life }
    }
}

impl DomainBackend for Backend {
    fn now(&self) -> SystemTime {
        self.world.options.wall_epoch + self.world.now()
    }

    fn monotonic(&self) -> Instant {
        self.world.start + self.world.now()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let at = at.saturating_duration_since(self.world.start);
        Box::pin(Sleep::new(Arc::clone(&self.world), self.life.clone(), at))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Box<dyn SpawnedTask> {
        let life = self.life.clone();
        let ended = life.as_ref().is_some_and(|life| life.has_ended());
        // What a process starts after its end is held on to, like what it has left, and never runs.
        let runtime = &self.world.runtime;
        let task = if ended {
            runtime.spawn(Mortal::new(task, life.clone()))
        } else {
            let living = self.world.enlist(life.as_ref().map(|life| life.id));
            let task = CURRENT.scope(living.id, async move {
                // Owned by the task: it lives as long as this.
                let _living = living;
                task.await;
            });
            runtime.spawn(Mortal::new(Box::pin(task), life.clone()))
        };
        Box::new(Task {
            task: task.abort_handle(),
            life,
        })
    }

    fn rng(&self, label: &str) -> Rng {
        match &self.life {
            None => self.world.rng(label),
            Some(life) => self.world.rng(&life.label(label)),
        }
    }

    fn fill_token(&self, token: &mut [u8]) {
        self.world.fill_token(token);
    }
}

impl SpawnedTask for Task {
    fn abort(&self) {
        // A crash cleans nothing up (S1.11).
        if !self.life.as_ref().is_some_and(|life| life.has_ended()) {
            self.task.abort();
        }
    }

    fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}
