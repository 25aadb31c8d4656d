//! A list of marked rows and a fleet that do what a test says.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinboard::scanner::{
    Attempt, Cursor, Fleet, FleetAway, Holder, Marked, MarkedError, MarkedPage, MarkedRows, Scanner,
};
use pinboard::settings::Settings;
use pinboard::store::{MemoryStore, PlacementKey, RegistryStore, SessionId, StoreOptions};
use pinned_domain::{Domain, TaskHandle};
use tokio::time::Instant;

pub(super) const LEASE_TTL: Duration = Duration::from_secs(15);
const PER_PAGE: usize = 100;

pub(super) fn key(id: impl ToString) -> PlacementKey {
    PlacementKey::single("/rooms", id.to_string())
}

/// The list: ids with the epochs that the durable store has seen.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) marked: Mutex<BTreeMap<PlacementKey, u64>>,
    pub(super) away: Mutex<bool>,
    pub(super) looks: Mutex<usize>,
}

impl Rows {
    pub(super) fn mark(&self, key: PlacementKey) {
        self.marked.lock().insert(key, 0);
    }

    fn check(&self) -> Result<(), MarkedError> {
        if *self.away.lock() {
            return Err(MarkedError("it is away".into()));
        }
        Ok(())
    }

    fn read(&self, after: Option<&Cursor>) -> Result<MarkedPage, MarkedError> {
        self.check()?;
        if after.is_none() {
            *self.looks.lock() += 1;
        }
        let marked = self.marked.lock();
        let beyond = |key: &PlacementKey| {
            after.is_none_or(|cursor| (&*key.ns, &*key.id) > (&*cursor.ns, &*cursor.id))
        };
        let ids: Vec<Marked> = marked
            .iter()
            .filter(|(key, _)| beyond(key))
            .take(PER_PAGE)
            .map(|(key, epoch)| Marked {
                key: key.clone(),
                epoch: *epoch,
            })
            .collect();
        let next = ids
            .last()
            .filter(|_| ids.len() == PER_PAGE)
            .map(|last| Cursor {
                ns: last.key.ns.to_string(),
                id: last.key.id.to_string(),
                tray_ns: String::new(),
                tray_id: String::new(),
            });
        Ok(MarkedPage { ids, next })
    }
}

impl MarkedRows for Rows {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<MarkedPage, MarkedError>> {
        async move { self.read(after) }.boxed()
    }

    fn highest_epoch(&self) -> BoxFuture<'_, Result<u64, MarkedError>> {
        async move {
            self.check()?;
            Ok(self.marked.lock().values().copied().max().unwrap_or(0))
        }
        .boxed()
    }
}

/// What a wake of an id comes to, given how often it was tried before.
type Script = Box<dyn Fn(&PlacementKey, usize) -> Attempt + Send + Sync>;

pub(super) struct FakeFleet {
    script: Script,
    /// How long a wake takes.
    pub(super) takes: Mutex<Duration>,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) holders: HashMap<PlacementKey, Holder>,
    pub(super) wakes: Vec<(Instant, PlacementKey)>,
    pub(super) at_once: usize,
    pub(super) most_at_once: usize,
    pub(super) floor: u64,
    pub(super) cold: bool,
    tries: HashMap<PlacementKey, usize>,
}

impl FakeFleet {
    pub(super) fn new(
        script: impl Fn(&PlacementKey, usize) -> Attempt + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            takes: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Everything wakes at once.
    pub(super) fn willing() -> Arc<Self> {
        Self::new(|_, _| awake())
    }

    pub(super) fn wakes_of(&self, key: &PlacementKey) -> Vec<Instant> {
        let state = self.state.lock();
        let of_it = state.wakes.iter().filter(|(_, woken)| woken == key);
        of_it.map(|(at, _)| *at).collect()
    }

    pub(super) fn hold(&self, key: PlacementKey, epoch: u64) {
        self.state.lock().holders.insert(key, holder(epoch));
    }
}

pub(super) fn holder(epoch: u64) -> Holder {
    Holder {
        session: SessionId::new("s"),
        epoch,
    }
}

pub(super) fn awake() -> Attempt {
    Attempt::Awake(holder(1))
}

impl Fleet for FakeFleet {
    fn holder<'a>(
        &'a self,
        key: &'a PlacementKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, FleetAway>> {
        async move { Ok(self.state.lock().holders.get(key).cloned()) }.boxed()
    }

    fn wake<'a>(&'a self, key: &'a PlacementKey, _: u64) -> BoxFuture<'a, Attempt> {
        async move {
            let tries = {
                let mut state = self.state.lock();
                state.wakes.push((Domain::real().monotonic(), key.clone()));
                state.at_once += 1;
                state.most_at_once = state.most_at_once.max(state.at_once);
                let tries = state.tries.entry(key.clone()).or_default();
                *tries += 1;
                *tries - 1
            };
            let takes = *self.takes.lock();
            Domain::real().sleep(takes).await;
            let attempt = (self.script)(key, tries);
            let mut state = self.state.lock();
            state.at_once -= 1;
            if let Attempt::Awake(holder) = &attempt {
                state.holders.insert(key.clone(), holder.clone());
            }
            attempt
        }
        .boxed()
    }

    fn raise_floor(&self, epoch: u64) {
        let mut state = self.state.lock();
        state.floor = state.floor.max(epoch);
    }

    fn is_cold(&self) -> BoxFuture<'_, Result<bool, FleetAway>> {
        async move { Ok(self.state.lock().cold) }.boxed()
    }
}

pub(super) fn store() -> MemoryStore {
    let options = StoreOptions {
        lease_ttl: LEASE_TTL,
        quarantine: Duration::ZERO,
        shards: 1,
    };
    MemoryStore::new(options, Domain::real())
}

/// A scanner that runs until it is dropped.
pub(super) struct Running {
    pub(super) scanner: Arc<Scanner>,
    task: TaskHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn scan(
    store: Arc<dyn RegistryStore>,
    rows: &Arc<Rows>,
    fleet: &Arc<FakeFleet>,
    node: &str,
) -> Running {
    let mut settings = Settings::default();
    settings.lease_ttl = LEASE_TTL;
    let scanner = Arc::new(Scanner::new(
        store,
        Arc::clone(rows) as _,
        Arc::clone(fleet) as _,
        &settings,
        node.into(),
        Domain::real(),
    ));
    let task = Domain::real().spawn({
        let scanner = Arc::clone(&scanner);
        async move { match scanner.run().await {} }
    });
    Running { scanner, task }
}

pub(super) async fn pass(time: Duration) {
    Domain::real().sleep(time).await;
}
