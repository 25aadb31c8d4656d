//! Sleeping in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::process::Life;
use super::world::{TimerKey, World};

/// Ends once the virtual clock has reached `at`; one that is due already yields once (S1.6).
pub(super) struct Sleep {
    world: Arc<World>,
    /// Whose sleep it is; it never ends once that life has.
    life: Option<Arc<Life>>,
    at: Duration,
    stage: Stage,
}

enum Stage {
    New,
    Yielded,
    Set(TimerKey),
    Over,
}

impl Sleep {
    pub(super) fn new(world: Arc<World>, life: Option<Arc<Life>>, at: Duration) -> Self {
        Self {
            world,
            life,
            at,
            stage: Stage::New,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let life = self.life.as_ref();
        if life.is_some_and(|life| life.has_ended()) {
            return Poll::Pending;
        }
        match self.stage {
            Stage::New if self.at <= self.world.now() => {
                self.stage = Stage::Yielded;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Stage::New => {
                let life = life.map(|life| life.id);
                let key = self.world.set_timer(life, self.at, cx.waker().clone());
                self.stage = Stage::Set(key);
                Poll::Pending
            }
            Stage::Set(key) if !self.world.poll_timer(key, cx.waker()) => Poll::Pending,
            Stage::Yielded | Stage::Set(_) | Stage::Over => {
                self.stage = Stage::Over;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Stage::Set(key) = self.stage {
            self.world.forget_timer(key);
        }
    }
}
