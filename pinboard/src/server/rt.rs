//! The domain, as hyper sees it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Executor, Sleep, Timer};
use pinned_domain::Domain;
use sync_wrapper::SyncWrapper;

/// Runs hyper's tasks in a domain.
#[derive(Clone, Debug)]
pub(super) struct DomainExecutor(pub(super) Domain);

impl<F> Executor<F> for DomainExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(self.0.spawn(future));
    }
}

/// Tells hyper the time of a domain.
#[derive(Clone, Debug)]
pub(super) struct DomainTimer(pub(super) Domain);

impl Timer for DomainTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(DomainSleep::new(self.0.sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(DomainSleep::new(self.0.sleep_until(deadline.into())))
    }

    fn now(&self) -> Instant {
        self.0.monotonic().into_std()
    }
}

/// hyper wants a sleep that can be shared between threads, although it never shares one.
struct DomainSleep(SyncWrapper<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl DomainSleep {
    fn new(sleep: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(SyncWrapper::new(Box::pin(sleep)))
    }
}

impl Future for DomainSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.get_mut().as_mut().poll(cx)
    }
}

impl Sleep for DomainSleep {}
