//! What all parts of a worker share.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pinned_domain::{Domain, until};
use pinned_wire::registry::Secret;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::clock::Clock;
use super::knobs::Knobs;
use super::options::WorkerOptions;
use super::state::{Closing, Now, Phase, State};
use super::transport::{RegistryAnswer, RegistryTransport};

/// How long a call to the registry may take (W2.3).
const CALL: Duration = Duration::from_secs(5);

pub(super) struct Core {
    this: Weak<Self>,
    pub(super) options: WorkerOptions,
    pub(super) domain: Domain,
    pub(super) client_id: String,
    pub(super) secret: Secret,
    /// The path of the advertised URL, which comes before that of every request.
    pub(super) prefix: String,
    pub(super) clock: Arc<Clock>,
    pub(super) knobs: Knobs,
    pub(super) state: Mutex<State>,
    /// Told whenever the state has changed.
    pub(super) changed: Notify,
    /// Held while releases are sent.
    pub(super) releasing: tokio::sync::Mutex<()>,
    /// Held while a registration or a heartbeat is sent.
    pub(super) registering: tokio::sync::Mutex<()>,
    pub(super) started: Instant,
    transport: Box<dyn RegistryTransport>,
}

impl Core {
    pub(super) fn new(
        options: WorkerOptions,
        transport: impl RegistryTransport,
        domain: Domain,
    ) -> Arc<Self> {
        let clock = Arc::new(Clock::new(domain.clone()));
        let url = url::Url::parse(&options.advertise_url);
        let prefix = url.map(|url| url.path().trim_end_matches('/').to_owned());
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            client_id: domain.token_hex(16),
            secret: Secret::new(domain.token_hex(32)),
            prefix: prefix.unwrap_or_default(),
            knobs: Knobs::new(Arc::clone(&clock), options.headroom),
            clock,
            state: Mutex::new(State::new(&options)),
            changed: Notify::new(),
            releasing: tokio::sync::Mutex::default(),
            registering: tokio::sync::Mutex::default(),
            started: domain.monotonic(),
            transport: Box::new(transport),
            options,
            domain,
        })
    }

    /// Itself, for tasks that outlive a call.
    pub(super) fn this(&self) -> Arc<Self> {
        // Whoever calls has a reference that owns it.
        match self.this.upgrade() {
            Some(this) => this,
            None => unreachable!("a worker is owned while it is used"),
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            own: self.clock.now(),
            world: self.domain.monotonic(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Ends once the worker serves no more.
    pub(super) async fn over(&self) {
        until(&self.changed, || {
            matches!(self.phase(), Phase::Stopped | Phase::Crashed)
        })
        .await;
    }

    /// Waits until nothing lives.
    pub(super) async fn is_empty(&self) {
        until(&self.changed, || self.state.lock().records.is_empty()).await;
    }

    /// Ends what has begun to close, beside the caller.
    pub(super) fn finish_all(&self, closing: Vec<Closing>) {
        for closing in closing {
            let core = self.this();
            self.domain.spawn(async move { core.finish(closing).await });
        }
    }

    /// Closes what is due, whenever it is due, until the worker is over.
    pub(super) async fn keep(self: Arc<Self>) {
        loop {
            self.clock.runs().await;
            // Taken before the look, so that no change is missed.
            let changed = self.changed.notified();
            let (closing, next) = {
                let now = self.now();
                let mut state = self.state.lock();
                if matches!(state.phase, Phase::Stopped | Phase::Crashed) {
                    return;
                }
                (state.review(now), state.next_review())
            };
            self.finish_all(closing);
            match next {
                Some(next) => tokio::select! {
                    // In an order that a simulation repeats.
                    biased;
                    () = changed => {}
                    () = self.clock.sleep_until(next) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Calls the registry.
    pub(super) async fn call(
        &self,
        path: &'static str,
        body: &impl Serialize,
    ) -> io::Result<RegistryAnswer> {
        let body = serde_json::to_vec(body)?;
        self.clock.runs().await;
        if self.knobs.is_isolated() || self.phase() == Phase::Crashed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let call = self.transport.call(path, Bytes::from(body));
        let answer = self.domain.timeout(CALL, call).await;
        self.clock.runs().await;
        if self.phase() == Phase::Crashed {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}
