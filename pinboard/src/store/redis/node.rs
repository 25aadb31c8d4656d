//! One server, connected to for as long as it is of use.

use std::sync::Arc;
use std::time::Duration;

use pinned_domain::{Domain, Rng, TaskHandle};
use redis::{Pipeline, Value};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::error::Failure;
use super::invalidations::Invalidations;
use super::link::{Dialer, Link};
use super::url::Address;

/// How long a connection may take until it is ready.
pub(super) const CONNECT: Duration = Duration::from_secs(2);
/// How long an answer may take.
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// For how long after a connection was lost callers wait for the next; later ones are refused at once.
const GRACE: Duration = Duration::from_millis(500);
/// How long nothing may be heard until the server is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(1);
/// The pauses between attempts to connect double from the first to the last of these.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// One server. Its connection is made again whenever it is lost, until this is dropped.
pub(super) struct Node {
    pub(super) address: Address,
    domain: Domain,
    state: watch::Receiver<State>,
    doubt: Arc<Notify>,
    supervisor: TaskHandle<()>,
}

#[derive(Clone)]
enum State {
    Up(Arc<Link>),
    Down { since: Instant, why: Failure },
}

/// What every node of a store works with.
pub(super) struct Surroundings {
    pub(super) dialer: Dialer,
    pub(super) invalidations: Arc<Invalidations>,
    /// Notified when a connection was made or lost, or its server has lost everything.
    pub(super) stirred: Arc<Notify>,
    pub(super) jitter: Rng,
}

struct Supervisor {
    address: Address,
    around: Arc<Surroundings>,
    state: watch::Sender<State>,
    doubt: Arc<Notify>,
}

// ===== impl Node =====

impl Node {
    pub(super) fn start(address: Address, around: &Arc<Surroundings>) -> Arc<Self> {
        let domain = around.dialer.domain.clone();
        let (sender, state) = watch::channel(State::Down {
            since: domain.monotonic(),
            why: Failure::away(&address, "not connected yet"),
        });
        let doubt = Arc::new(Notify::new());
        let supervisor = Supervisor {
            address: address.clone(),
            around: Arc::clone(around),
            state: sender,
            doubt: Arc::clone(&doubt),
        };
        Arc::new(Self {
            address,
            supervisor: domain.spawn(supervisor.run()),
            domain,
            state,
            doubt,
        })
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(_))
    }

    /// The connection, waiting for it a moment when it has just been lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn link(&self) -> Result<Arc<Link>, Failure> {
        let mut state = self.state.clone();
        loop {
            let (since, why) = match &*state.borrow_and_update() {
                State::Up(link) => return Ok(Arc::clone(link)),
                State::Down { since, why } => (*since, why.clone()),
            };
            let left = GRACE.saturating_sub(self.domain.monotonic() - since);
            if left.is_zero() || !why.is_transient() {
                return Err(why);
            }
            // It has changed, or the time is over, or nobody connects any more: a look tells.
            match self.domain.timeout(left, state.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => match &*state.borrow() {
                    State::Up(link) => return Ok(Arc::clone(link)),
                    State::Down { why, .. } => return Err(why.clone()),
                },
            }
        }
    }

    /// Sends commands over `link`; what came of each.
    ///
    /// An answer over a connection that has been given up meanwhile is none: nobody watches what was read there.
    ///
    /// # Cancel safety
    ///
    /// What has been sent happens.
    pub(super) async fn send(
        &self,
        link: &Arc<Link>,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, Failure> {
        match self.domain.timeout(ANSWER, link.send(commands)).await {
            Ok(Ok(answers)) => match &*self.state.borrow() {
                State::Up(current) if Arc::ptr_eq(current, link) => Ok(answers),
                _ => Err(Failure::away(
                    &self.address,
                    "the connection was lost meanwhile",
                )),
            },
            Ok(Err(error)) => {
                self.doubt();
                Err(Failure::of_connection(&self.address, &error))
            }
            Err(_) => {
                self.doubt();
                Err(Failure::timed_out(&self.address))
            }
        }
    }

    /// Has the connection looked at, and made again unless it answers.
    pub(super) fn doubt(&self) {
        self.doubt.notify_one();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

// ===== impl Supervisor =====

impl Supervisor {
    async fn run(self) {
        let domain = &self.around.dialer.domain;
        let mut pause = PAUSES.0;
        loop {
            match domain.timeout(CONNECT, self.dial()).await {
                Ok(Ok(link)) => {
                    tracing::info!(target: "pinboard::store", redis = %self.address, "connected to Redis");
                    let link = Arc::new(link);
                    // Whatever was read over an earlier connection is not watched any more.
                    self.around.invalidations.everything();
                    self.state.send_replace(State::Up(Arc::clone(&link)));
                    self.around.stirred.notify_one();
                    let why = self.watch(&link).await;
                    tracing::warn!(target: "pinboard::store", error = %why, "lost the connection to Redis");
                    self.down(why);
                    self.around.invalidations.everything();
                    pause = PAUSES.0;
                }
                Ok(Err(why)) => self.missed(why),
                Err(_) => self.missed(Failure::timed_out(&self.address)),
            }
            self.around.stirred.notify_one();
            domain
                .sleep(pause.mul_f64(self.around.jitter.uniform(0.5..1.0)))
                .await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn dial(&self) -> Result<Link, Failure> {
        let stirred = Arc::clone(&self.around.stirred);
        let flushed = move || stirred.notify_one();
        self.around
            .dialer
            .dial(&self.address, &self.around.invalidations, flushed)
            .await
    }

    /// Ends when the connection is of no more use; why.
    async fn watch(&self, link: &Link) -> Failure {
        let domain = &self.around.dialer.domain;
        let mut ping = redis::pipe();
        ping.cmd("PING");
        loop {
            tokio::select! {
                () = link.lost.wait() => return Failure::away(&self.address, "the connection has ended"),
                () = self.doubt.notified() => {}
                () = domain.sleep(PING_EVERY) => {}
            }
            match domain.timeout(ANSWER, link.send(&ping)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Failure::of_connection(&self.address, &error),
                Err(_) => return Failure::timed_out(&self.address),
            }
        }
    }

    /// An attempt to connect has failed.
    fn missed(&self, why: Failure) {
        let first = self.state.borrow().differs(&why);
        if first {
            tracing::warn!(target: "pinboard::store", error = %why, "cannot connect to Redis");
        }
        self.down(why);
    }

    /// There is no connection: since now, unless there was none before.
    fn down(&self, why: Failure) {
        self.state.send_modify(|state| {
            let since = match state {
                State::Up(_) => self.around.dialer.domain.monotonic(),
                State::Down { since, .. } => *since,
            };
            *state = State::Down { since, why };
        });
    }
}

impl State {
    /// Whether this is something else than being away for this reason.
    fn differs(&self, why: &Failure) -> bool {
        match self {
            Self::Up(_) => true,
            Self::Down { why: before, .. } => before.to_string() != why.to_string(),
        }
    }
}
