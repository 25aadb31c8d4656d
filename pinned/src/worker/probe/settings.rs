//! How a worker watches itself.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::Ask;
use crate::error::{Error, Result};

/// Often enough that a recovery shows soon, and rare enough to cost nothing.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longer than a garbage collection of a neighbour or a burst of setups, and well within a lease of 15 s.
const THRESHOLD: Duration = Duration::from_secs(5);

/// How a worker watches itself: see [`WorkerBuilder::self_probe`](crate::WorkerBuilder::self_probe).
///
/// ```
/// # use std::time::Duration;
/// # use pinned::SelfProbe;
/// let patient = SelfProbe::new()
///     .interval(Duration::from_secs(2))
///     .threshold(Duration::from_secs(20));
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is given to `WorkerBuilder::self_probe`"]
pub struct SelfProbe {
    is_on: bool,
    interval: Option<Duration>,
    threshold: Option<Duration>,
    also: Option<Ask>,
}

/// The same, checked.
#[derive(Clone)]
pub(in crate::worker) struct Probing {
    pub(super) interval: Duration,
    pub(super) threshold: Duration,
    pub(super) also: Option<Ask>,
}

impl SelfProbe {
    /// Each second; unready after 5 s.
    pub fn new() -> Self {
        Self {
            is_on: true,
            interval: None,
            threshold: None,
            also: None,
        }
    }

    /// No self-probe: the worker is ready whenever it is registered and inside its lease.
    pub fn off() -> Self {
        Self {
            is_on: false,
            ..Self::new()
        }
    }

    /// How often the worker asks itself (1 s, or `PINNED_PROBE_INTERVAL_MS`).
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// For how long it may go without an answer (5 s, or `PINNED_PROBE_THRESHOLD_MS`); at least the interval.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = Some(threshold);
        self
    }

    /// Asks this besides the worker's own router: what hangs counts as a hang of the router, and a panic too.
    ///
    /// For a program that serves [`PinnedWorker::into_router`](crate::PinnedWorker::into_router) through a router of its own, whose
    /// layers the worker does not know. It is dropped if the worker ends while it is under way.
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::get};
    /// # use pinned::SelfProbe;
    /// use tower::ServiceExt as _;
    ///
    /// let app = Router::new().route("/ping", get(|| async {}));
    /// let probe = SelfProbe::new().also(move || {
    ///     let asked = app.clone().oneshot(Request::get("/ping").body(Body::empty()).expect("a request"));
    ///     async move {
    ///         // Any answer will do.
    ///         let Ok(_) = asked.await;
    ///     }
    /// });
    /// ```
    pub fn also<F>(mut self, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.also = Some(Arc::new(move || Box::pin(ask())));
        self
    }

    /// Fills in what was not set by hand; an interval of zero is off.
    pub(in crate::worker) fn fill_in(
        &mut self,
        interval: Option<Duration>,
        threshold: Option<Duration>,
    ) {
        if self.interval.is_none() {
            self.is_on = self.is_on && interval != Some(Duration::ZERO);
            self.interval = interval;
        }
        self.threshold = self.threshold.or(threshold);
    }

    /// What to do, where anything is to be done.
    pub(in crate::worker) fn check(self) -> Result<Option<Probing>> {
        if !self.is_on {
            return Ok(None);
        }
        let interval = self.interval.unwrap_or(INTERVAL);
        let threshold = self.threshold.unwrap_or(THRESHOLD.max(interval));
        if interval.is_zero() {
            return Err(Error::option(
                "interval",
                "of a self-probe is above zero (`SelfProbe::off` turns it off)",
            ));
        }
        if threshold < interval {
            return Err(Error::option(
                "threshold",
                "of a self-probe is at least its interval",
            ));
        }
        Ok(Some(Probing {
            interval,
            threshold,
            also: self.also,
        }))
    }
}

impl Default for SelfProbe {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SelfProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfProbe")
            .field("is_on", &self.is_on)
            .field("interval", &self.interval)
            .field("threshold", &self.threshold)
            .field("also", &self.also.is_some())
            .finish()
    }
}
