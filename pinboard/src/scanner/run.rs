//! The scanner at work.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::pin_mut;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use parking_lot::Mutex;
use pinned_domain::{Domain, ErrorChain, Rng};
use pinned_wire::ids::{invalid_id_reason, invalid_namespace_reason};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ledger::{Ledger, Next};
use super::pace::Pace;
use super::{
    Attempt, Fleet, FleetAway, Marked, MarkedError, MarkedRows, WAKES_AT_ONCE, WAKES_PER_SECOND,
    metrics,
};
use crate::settings::Settings;
use crate::store::{PlacementKey, RegistryStore};

/// The lease of the node that scans, in the registry store.
pub const SCANNER: &str = "scanner";

/// How many holders are looked up at once.
const LOOKUPS_AT_ONCE: usize = 64;
/// How many wakes begin at once after a while without any.
const BURST: u32 = 64;

/// One node's scanner: it scans while the node has the lease for it, and waits otherwise.
pub struct Scanner {
    store: Arc<dyn RegistryStore>,
    rows: Arc<dyn MarkedRows>,
    fleet: Arc<dyn Fleet>,
    domain: Domain,
    /// How this node is called, among those that would scan.
    node: Arc<str>,
    interval: Duration,
    /// For how long the lease is taken; also how long an id may stay marked under one holder without being asked.
    term: Duration,
    jitter: Rng,
}

/// A look came to nothing.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Rows(#[from] MarkedError),
    #[error(transparent)]
    Fleet(#[from] FleetAway),
}

impl Scanner {
    /// A scanner of `node`, which is a name that no other node has.
    ///
    /// # Panics
    ///
    /// Never: the label of its stream of random numbers is not empty.
    #[must_use]
    pub fn new(
        store: Arc<dyn RegistryStore>,
        rows: Arc<dyn MarkedRows>,
        fleet: Arc<dyn Fleet>,
        settings: &Settings,
        node: Arc<str>,
        domain: Domain,
    ) -> Self {
        let jitter = domain.rng("scanner-wakes").expect("a label");
        Self {
            store,
            rows,
            fleet,
            domain,
            node,
            interval: settings.sweep_interval,
            term: settings.lease_ttl.max(Duration::from_secs(1)),
            jitter,
        }
    }

    /// Scans whenever this node has the lease, for ever.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, and is how it ends: the next node takes over once the lease has run out, or at once after
    /// [`stand_down`](Self::stand_down).
    pub async fn run(&self) -> Infallible {
        let floor = self.keep_floor();
        let scanning = async {
            loop {
                self.await_lease().await;
                tracing::info!(node = &*self.node, "this node scans for durable work");
                self.lead().await;
                metrics::lag(0, Duration::ZERO);
                tracing::info!(node = &*self.node, "another node scans for durable work");
            }
        };
        pin_mut!(floor, scanning);
        match select(floor, scanning).await {
            Either::Left((never, _)) | Either::Right((never, _)) => never,
        }
    }

    /// Gives the lease up, for another node to take at once.
    ///
    /// # Cancel safety
    ///
    /// The lease may have been given up.
    pub async fn stand_down(&self) {
        metrics::lag(0, Duration::ZERO);
        // It runs out by itself.
        let _ = self.store.stand_down(SCANNER, &self.node).await;
    }

    // --- The lease ---

    async fn await_lease(&self) {
        while !matches!(self.take_lease().await, Ok(true)) {
            self.domain.sleep(self.term / 3).await;
        }
    }

    async fn take_lease(&self) -> Result<bool, crate::store::StoreError> {
        self.store.lead(SCANNER, &self.node, self.term).await
    }

    /// Scans until the lease is lost.
    async fn lead(&self) {
        let (ledger, seen) = (Mutex::new(Ledger::new(self.term)), Notify::new());
        let (lost, looks, wakes) = (
            self.lose_lease(),
            self.look_again_and_again(&ledger, &seen),
            self.wake_what_is_due(&ledger, &seen),
        );
        pin_mut!(lost, looks, wakes);
        tokio::select! {
            biased;
            () = lost => {}
            never = looks => match never {},
            never = wakes => match never {},
        }
    }

    /// Renews the lease, and ends once another node has it or might.
    async fn lose_lease(&self) {
        let mut until = self.domain.monotonic() + self.term;
        loop {
            self.domain.sleep(self.term / 3).await;
            let sent = self.domain.monotonic();
            let left = until.saturating_duration_since(sent);
            match self.domain.timeout(left, self.take_lease()).await {
                Ok(Ok(true)) => until = sent + self.term,
                Ok(Ok(false)) | Err(_) => return,
                // The lease runs on for now.
                Ok(Err(_)) => {}
            }
        }
    }

    // --- Looking ---

    async fn look_again_and_again(&self, ledger: &Mutex<Ledger>, seen: &Notify) -> Infallible {
        let mut failing = false;
        loop {
            let begun = self.domain.monotonic();
            match self.look(ledger, seen).await {
                Ok(()) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("durable work is found again");
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(
                            error = %ErrorChain(&error),
                            "cannot look for durable work; trying again and again"
                        );
                    }
                }
            }
            // A look that takes long is followed by a rest as long: neither database is kept busy by looks alone.
            let took = self.domain.monotonic() - begun;
            self.domain
                .sleep(took.max(self.interval.saturating_sub(took)))
                .await;
        }
    }

    /// Reads the whole list once.
    async fn look(&self, ledger: &Mutex<Ledger>, seen: &Notify) -> Result<(), LookError> {
        ledger.lock().begin_look();
        let mut after = None;
        let mut before = HashSet::new();
        let mut odd = 0_u64;
        loop {
            let page = self.rows.page(after.as_ref()).await?;
            let mut keys = HashSet::with_capacity(page.ids.len());
            let fresh: Vec<Marked> = page
                .ids
                .into_iter()
                .filter(|marked| {
                    let fresh = !before.contains(&marked.key) && keys.insert(marked.key.clone());
                    let addressable = is_addressable(&marked.key);
                    odd += u64::from(fresh && !addressable);
                    fresh && addressable
                })
                .collect();
            self.look_up(fresh, ledger, seen).await?;
            before = keys;
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if odd > 0 {
            tracing::debug!(
                rows = odd,
                "marked rows whose namespace or id no request can name"
            );
        }
        let lag = ledger.lock().end_look(self.domain.monotonic());
        metrics::lag(lag.unowned, lag.oldest);
        Ok(())
    }

    async fn look_up(
        &self,
        ids: Vec<Marked>,
        ledger: &Mutex<Ledger>,
        seen: &Notify,
    ) -> Result<(), FleetAway> {
        let mut lookups = futures_util::stream::iter(ids)
            .map(|marked| async move {
                let holder = self.fleet.holder(&marked.key).await;
                (marked, holder)
            })
            .buffer_unordered(LOOKUPS_AT_ONCE);
        while let Some((marked, holder)) = lookups.next().await {
            let now = self.domain.monotonic();
            if ledger.lock().see(marked, holder?, now) {
                seen.notify_one();
            }
        }
        Ok(())
    }

    // --- Waking ---

    async fn wake_what_is_due(&self, ledger: &Mutex<Ledger>, seen: &Notify) -> Infallible {
        let mut pace = Pace::new(WAKES_PER_SECOND, BURST, self.domain.monotonic());
        let mut under_way = FuturesUnordered::new();
        let mut warned = HashSet::new();
        loop {
            let mut next = None;
            while under_way.len() < WAKES_AT_ONCE {
                match self.next_wake(ledger, &mut pace) {
                    Ok(Some(marked)) => under_way.push(self.wake(marked)),
                    Ok(None) => break,
                    Err(at) => {
                        next = Some(at);
                        break;
                    }
                }
            }
            let at = next.map(|at| self.domain.sleep_until(at));
            let until = async {
                match at {
                    Some(at) => at.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((key, attempt)) = under_way.next() => {
                    self.settle(ledger, &key, attempt, &mut warned);
                }
                () = until => {}
                () = seen.notified() => {}
            }
        }
    }

    /// The next wake; when to look again, if none may begin now.
    fn next_wake(
        &self,
        ledger: &Mutex<Ledger>,
        pace: &mut Pace,
    ) -> Result<Option<Marked>, Instant> {
        let now = self.domain.monotonic();
        let mut ledger = ledger.lock();
        pace.ready(now)?;
        match ledger.next(now) {
            Next::Wake(marked) => {
                pace.take(now);
                Ok(Some(marked))
            }
            Next::At(at) => Err(at),
            Next::Nothing => Ok(None),
        }
    }

    async fn wake(&self, marked: Marked) -> (PlacementKey, Attempt) {
        let attempt = self.fleet.wake(&marked.key, marked.epoch).await;
        (marked.key, attempt)
    }

    fn settle(
        &self,
        ledger: &Mutex<Ledger>,
        key: &PlacementKey,
        attempt: Attempt,
        warned: &mut HashSet<(Arc<str>, u16)>,
    ) {
        metrics::woken(&attempt);
        tracing::debug!(%key, env = %key.env, outcome = attempt.outcome(), "wake");
        if let Attempt::Failed { status } = attempt
            && warned.insert((Arc::clone(&key.ns), status))
        {
            tracing::warn!(
                namespace = %key.ns, instance_id = %key.id, status,
                "a worker does not take wakes: has it a state store?"
            );
        }
        let now = self.domain.monotonic();
        ledger
            .lock()
            .settle(key, attempt, self.jitter.uniform(0.0..1.0), now);
    }

    // --- The floor of epochs ---

    /// Tells the fleet the highest epoch of the durable store, at the start and whenever the fleet starts cold: what a store that was
    /// wiped does not remember, and a clock that was set back would give out again (P4.3).
    async fn keep_floor(&self) -> Infallible {
        let mut known = false;
        loop {
            // Of a registry that does not answer nothing is known.
            let cold = self.fleet.is_cold().await.unwrap_or(true);
            if cold || !known {
                match self.rows.highest_epoch().await {
                    Ok(highest) => {
                        self.fleet.raise_floor(highest);
                        known = true;
                    }
                    Err(_) => known = false,
                }
            }
            self.domain.sleep(self.interval).await;
        }
    }
}

/// Whether a request could name it. Others write to the table too.
fn is_addressable(key: &PlacementKey) -> bool {
    invalid_namespace_reason(&key.ns).is_none() && invalid_id_reason(&key.id).is_none()
}
