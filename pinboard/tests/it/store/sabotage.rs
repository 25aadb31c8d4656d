//! Stores that break the contract in one place each: the suite must find every one of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinboard::store::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Expected, Fence, FencedRow,
    Heartbeat, HeartbeatOutcome, Invalidation, MemoryStore, MessageBody, NewSession, PlacementKey,
    Reclaimed, Registered, RegistryStore, Release, Row, SessionChanges, SessionId, StoreFuture,
    StoreOptions,
};
use pinboard::testing::conformance::{self, RegistryFleet, RegistryHarness};
use pinned_domain::{Domain, panic_message};
use pinned_testing::sim::{Sim, SimOptions};
use tokio::sync::mpsc;
use tokio::task::yield_now;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// A takeover does not ask whether the holder lives.
    LiveHoldersLose,
    /// A takeover does not compare the epoch.
    AnyRowWillDo,
    /// A claim looks, and then acts.
    LookThenAct,
    /// What the durable store knows is not asked.
    AboveIsIgnored,
    /// A release does not compare the epoch.
    AnyEpochIsReleased,
    /// A release does not compare the session.
    AnybodyReleases,
    /// A claim does not wait for whom a release prefers.
    PreferencesAreIgnored,
    /// A heartbeat of a session that is dead is taken.
    TheDeadAreRenewed,
    /// A session that ends later ends at once.
    EndsAtOnce,
    /// Registering again leaves the earlier session alone.
    EarlierSessionsLiveOn,
    /// Confirmations are dropped.
    AcksAreLost,
    /// Messages are dropped.
    MessagesAreLost,
    /// The rows of a previous session are not moved.
    NothingMoves,
    /// A reclaim takes the row of a live session.
    DuplicatesAreClaimed,
    /// A fence is not lifted.
    FencesStay,
    /// Orders are dropped.
    OrdersAreLost,
    /// Nothing is swept.
    NothingIsSwept,
    /// Events come in the wrong order.
    EventsAreReversed,
    /// Everybody leads.
    EverybodyLeads,
    /// Changes are not told.
    NothingIsTold,
    /// Readers of sessions learn nothing new.
    ReadersStayBehind,
    /// Sessions live for twice as long.
    LongLeases,
    /// Sessions live for half as long.
    ShortLeases,
    /// New ids are placed at once.
    NoQuarantine,
    /// A quarantine cannot be extended.
    NoExtension,
}

struct Store {
    inner: MemoryStore,
    mutant: Mutant,
    domain: Domain,
}

struct Harness(Domain, Mutant);

struct Fleet(MemoryStore, Mutant, Domain);

impl RegistryHarness for Harness {
    fn domain(&self) -> Domain {
        self.0.clone()
    }

    fn virtual_time(&self) -> bool {
        true
    }

    fn fleet(&self, mut options: StoreOptions) -> BoxFuture<'_, Box<dyn RegistryFleet>> {
        match self.1 {
            Mutant::LongLeases => options.lease_ttl *= 2,
            Mutant::ShortLeases => options.lease_ttl /= 2,
            Mutant::NoQuarantine => options.quarantine = Duration::ZERO,
            _ => {}
        }
        let store = MemoryStore::new(options, self.0.clone());
        let fleet = Fleet(store, self.1, self.0.clone());
        Box::pin(async { Box::new(fleet) as Box<dyn RegistryFleet> })
    }
}

impl RegistryFleet for Fleet {
    fn node(&self) -> BoxFuture<'_, Arc<dyn RegistryStore>> {
        let store = Store {
            inner: self.0.node(),
            mutant: self.1,
            domain: self.2.clone(),
        };
        Box::pin(async { Arc::new(store) as Arc<dyn RegistryStore> })
    }

    fn wipe(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.0.wipe() })
    }
}

impl Store {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    /// Frees a row, whoever holds it.
    async fn free(&self, key: &PlacementKey) {
        if let Ok(Some(row)) = self.inner.row(key).await {
            let release = Release {
                session: row.session,
                key: key.clone(),
                epoch: None,
            };
            self.inner.release(&[release]).await.expect("freed");
        }
    }

    async fn claim_badly(&self, mut claim: Claim) -> Claimed {
        let key = claim.key.clone();
        let row = self.inner.row(&key).await.expect("a row");
        match (self.mutant, &mut claim.expected) {
            (Mutant::LiveHoldersLose, Expected::HeldByDead { session, epoch })
                if row
                    .as_ref()
                    .is_some_and(|row| row.session == *session && row.epoch == *epoch) =>
            {
                self.free(&key).await;
                claim.expected = Expected::VacantForAnyone;
            }
            (Mutant::AnyRowWillDo, Expected::HeldByDead { session, epoch }) => {
                if let Some(row) = row {
                    (*session, *epoch) = (row.session, row.epoch);
                }
            }
            (Mutant::LookThenAct, Expected::Vacant | Expected::VacantForAnyone) => {
                yield_now().await;
                let now = self.inner.row(&key).await.expect("a row");
                if row.is_none() && now.is_some() {
                    self.free(&key).await;
                    claim.expected = Expected::VacantForAnyone;
                }
            }
            (Mutant::AboveIsIgnored, _) => claim.above = 0,
            (Mutant::PreferencesAreIgnored, expected @ Expected::Vacant) => {
                *expected = Expected::VacantForAnyone;
            }
            _ => {}
        }
        self.inner.claim(claim).await.expect("an answer")
    }
}

impl RegistryStore for Store {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.inner.prepare()
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.inner.ping()
    }

    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.inner.quarantine()
    }

    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        if self.is(Mutant::NoExtension) {
            return Box::pin(async { Ok(()) });
        }
        self.inner.extend_quarantine(at_least)
    }

    fn register(&self, mut session: NewSession) -> StoreFuture<'_, Registered> {
        if self.is(Mutant::EarlierSessionsLiveOn) {
            session.record.client_id = self.domain.token_hex(16);
        }
        self.inner.register(session)
    }

    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        let previous = match self.mutant {
            Mutant::NothingMoves => &[],
            _ => previous,
        };
        Box::pin(async move {
            if self.is(Mutant::DuplicatesAreClaimed) {
                for key in keys {
                    let row = self.inner.row(key).await?;
                    if row.is_some_and(|row| !previous.contains(&row.session)) {
                        self.free(key).await;
                    }
                }
            }
            self.inner.reclaim(session, previous, keys).await
        })
    }

    fn heartbeat(&self, mut heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        if self.is(Mutant::AcksAreLost) {
            heartbeat.acks.clear();
        }
        Box::pin(async move {
            match self.inner.heartbeat(heartbeat).await? {
                HeartbeatOutcome::Unknown if self.is(Mutant::TheDeadAreRenewed) => {
                    Ok(HeartbeatOutcome::Renewed {
                        drain: None,
                        messages: Vec::new(),
                    })
                }
                outcome => Ok(outcome),
            }
        })
    }

    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        let mode = if self.is(Mutant::EndsAtOnce) {
            EndMode::Now
        } else {
            mode
        };
        self.inner.end_session(session, mode)
    }

    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.inner.client_of(session)
    }

    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        if self.is(Mutant::ReadersStayBehind) && version > 0 {
            let changes = SessionChanges {
                version,
                ..SessionChanges::default()
            };
            return Box::pin(async { Ok(changes) });
        }
        self.inner.sessions_since(version)
    }

    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.inner.row(key)
    }

    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        Box::pin(async move { Ok(self.claim_badly(claim).await) })
    }

    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let mut releases = releases.to_vec();
            for release in &mut releases {
                if self.is(Mutant::AnyEpochIsReleased) {
                    release.epoch = None;
                }
                let row = self.inner.row(&release.key).await?;
                if let Some(row) = row.filter(|_| self.is(Mutant::AnybodyReleases)) {
                    release.session = row.session;
                }
            }
            self.inner.release(&releases).await
        })
    }

    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        Box::pin(async move {
            if self.is(Mutant::FencesStay) && fence.is_none() {
                let row = self.inner.row(key).await?;
                return Ok(row.map(|row| FencedRow {
                    session: row.session,
                    epoch: row.epoch,
                }));
            }
            self.inner.fence(key, fence).await
        })
    }

    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        self.inner.held_by(session, env, ns, cursor)
    }

    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.inner.row_counts()
    }

    fn sweep(&self) -> StoreFuture<'_, bool> {
        if self.is(Mutant::NothingIsSwept) {
            return Box::pin(async { Ok(false) });
        }
        self.inner.sweep()
    }

    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.inner.client(client_id)
    }

    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if self.is(Mutant::OrdersAreLost) {
                return Ok(self.inner.client(client_id).await?.is_some());
            }
            self.inner.order_drain(client_id, drain).await
        })
    }

    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        mut messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        if self.is(Mutant::MessagesAreLost) {
            messages.clear();
        }
        self.inner.queue_messages(session, messages)
    }

    fn append_events(&self, mut events: Vec<Event>) -> StoreFuture<'_, ()> {
        if self.is(Mutant::EventsAreReversed) {
            events.reverse();
        }
        self.inner.append_events(events)
    }

    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.inner.events_after(seq, limit)
    }

    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let led = self.inner.lead(name, node, ttl).await?;
            Ok(led || self.is(Mutant::EverybodyLeads))
        })
    }

    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.inner.stand_down(name, node)
    }

    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.inner.leader(name)
    }

    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        if self.is(Mutant::NothingIsTold) {
            let (to, told) = mpsc::channel(1);
            self.domain.spawn(async move { to.closed().await });
            return Some(told);
        }
        self.inner.invalidations()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

/// What the suite says of a store.
fn verdict(mutant: Mutant) -> Result<(), String> {
    let run = || {
        let year = Duration::from_secs(365 * 86_400);
        let options = SimOptions::new(5).horizon(year);
        Sim::try_run(options, move |sim| async move {
            let harness = Harness(sim.domain(), mutant);
            match mutant {
                // Every view of a session would tell; how long it lives is for its time to tell.
                Mutant::LongLeases | Mutant::ShortLeases => {
                    conformance::registry_store_time(&harness).await;
                }
                _ => conformance::registry_store(&harness).await,
            }
        })
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
        Err(panic) => Err(panic_message(&*panic).to_owned()),
    }
}

#[test]
fn the_suite_finds_what_is_wrong() {
    for (mutant, rule) in [
        (Mutant::LiveHoldersLose, "P2.4"),
        (Mutant::AnyRowWillDo, "P4.2"),
        (Mutant::LookThenAct, "P12.5"),
        (Mutant::AboveIsIgnored, "P4.3"),
        (Mutant::AnyEpochIsReleased, "P2.8"),
        (Mutant::AnybodyReleases, "P2.8"),
        (Mutant::PreferencesAreIgnored, "P2.8"),
        (Mutant::TheDeadAreRenewed, "P2.6"),
        (Mutant::EndsAtOnce, "P2.4"),
        (Mutant::EarlierSessionsLiveOn, "P2.4"),
        (Mutant::AcksAreLost, "P2.10"),
        (Mutant::MessagesAreLost, "P2.10"),
        (Mutant::NothingMoves, "P2.5"),
        (Mutant::DuplicatesAreClaimed, "P2.5"),
        (Mutant::FencesStay, "P3.5"),
        (Mutant::OrdersAreLost, "P3.4"),
        (Mutant::NothingIsSwept, "P3.3"),
        (Mutant::EventsAreReversed, "P3.3"),
        (Mutant::EverybodyLeads, "P8.1"),
        (Mutant::NothingIsTold, "P5.7"),
        (Mutant::ReadersStayBehind, "P4.1"),
        (Mutant::LongLeases, "P3.3"),
        (Mutant::ShortLeases, "P2.4"),
        (Mutant::NoQuarantine, "P4.4"),
        (Mutant::NoExtension, "P4.4"),
    ] {
        match verdict(mutant) {
            Ok(()) => panic!("{mutant:?} passes the suite"),
            Err(said) => assert!(said.starts_with(rule), "{mutant:?}: {said}"),
        }
    }
}
