//! The trays of one instance: which are declared, which are live, and opening and closing them (T8, T9, T17).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::core::Core;
use super::definition::Tray;
use super::error::TrayError;
use super::key::Key;
use super::kind::{Kind, LiveTray};
use super::owner::TrayOwner;
use super::settings::SINGLE_ID;
use crate::domain::until;
use crate::durability::{Frontier, Row, RowFilter, RowState, StoreError, TrayKey};

/// In bytes. With an instance's id and the number of a chunk it fits into an index entry of PostgreSQL, which refuses
/// longer ones only when the row is written: the instance would have to end.
const LONGEST_ID: usize = 1_024;

/// The trays of one activation.
pub(crate) struct Trays {
    frontier: Frontier,
    owner: Weak<dyn TrayOwner>,
    /// The worker's limiter of dispatches (T11.1).
    slots: Arc<Semaphore>,
    kinds: Vec<Arc<dyn Kind>>,
    state: Mutex<State>,
    /// Told when an opening ends.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// In an order that a simulation repeats.
    live: BTreeMap<TrayKey, Arc<dyn LiveTray>>,
    /// One lock per tray that is being opened, for as long as anybody opens it or waits to (T9.1).
    opening: HashMap<TrayKey, OpeningLock>,
    /// The names that are closed, from the first on in the order of their declaration (T17.3).
    closed: usize,
    /// The activation has opened its trays; those that open from here on start at once.
    started: bool,
    /// What was opened before that, by the setup or by a hook: a row of it that was listed may be old.
    opened_early: HashSet<TrayKey>,
    /// The positions of what openings that were given up wrote last to their rows: whoever reads one waits for it.
    given_up: HashMap<TrayKey, u64>,
}

#[derive(Default)]
struct OpeningLock {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// How many open the tray, or wait to.
    holders: usize,
}

/// Whether a tray is made where there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Create,
    Refuse,
}

impl Trays {
    pub(crate) fn new(
        frontier: Frontier,
        owner: Weak<dyn TrayOwner>,
        slots: Arc<Semaphore>,
        kinds: Vec<Arc<dyn Kind>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            frontier,
            owner,
            slots,
            kinds,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// An opening was given up that has written to its row, at `position` last. Its tray is sealed, and was never in the
    /// directory.
    pub(super) fn given_up(&self, key: &TrayKey, position: u64) {
        let durable = self.frontier.durable();
        let mut state = self.state.lock();
        // Ids are the clients' own: nothing is kept for longer than it is needed.
        state.given_up.retain(|_, position| *position > durable);
        let last = state.given_up.entry(key.clone()).or_default();
        *last = position.max(*last);
    }

    /// Waits until the row has what openings that were given up wrote to it. For these rows alone: an effect of the log may
    /// open a tray, and must not wait for what is enlisted after it.
    async fn catch_up(&self, key: &TrayKey) -> Result<(), TrayError> {
        let Some(position) = self.state.lock().given_up.get(key).copied() else {
            return Ok(());
        };
        self.frontier.wait_for(position).await?;
        let mut state = self.state.lock();
        if state.given_up.get(key) == Some(&position) {
            state.given_up.remove(key);
        }
        Ok(())
    }

    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    pub(super) fn owner(&self) -> Weak<dyn TrayOwner> {
        Weak::clone(&self.owner)
    }

    pub(super) fn slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.slots)
    }

    fn kind(&self, name: &str) -> Result<(usize, &Arc<dyn Kind>), TrayError> {
        self.kinds
            .iter()
            .enumerate()
            .find(|(_, kind)| kind.name() == name)
            .ok_or_else(|| TrayError::Undeclared(name.to_owned()))
    }

    /// The live tray of `name` and `id`, opened if it must be.
    pub(crate) async fn get<W: Tray>(
        self: &Arc<Self>,
        name: &'static str,
        id: &str,
        absent: Absent,
    ) -> Result<Arc<Core<W>>, TrayError> {
        if id.is_empty() {
            return Err(TrayError::EmptyId);
        }
        if id.len() > LONGEST_ID {
            return Err(TrayError::LongId(id.len()));
        }
        let live = self.live(&TrayKey::new(name, id), absent).await?;
        live.into_any()
            .downcast()
            .map_err(|_| TrayError::Undeclared(name.to_owned()))
    }

    async fn live(
        self: &Arc<Self>,
        key: &TrayKey,
        absent: Absent,
    ) -> Result<Arc<dyn LiveTray>, TrayError> {
        loop {
            match self.look_up(key)? {
                Found::Live(live) => return Ok(live),
                // T9.1: a predecessor that is on its way out is awaited first.
                Found::Retiring(live) => live.ended().await,
                Found::Absent(opening) => {
                    let turn = opening.lock.lock().await;
                    let opened = match self.look_up(key)? {
                        Found::Absent(_) => self.read_and_open(key, absent).await,
                        Found::Live(live) => Ok(live),
                        Found::Retiring(live) => {
                            drop(turn);
                            live.ended().await;
                            continue;
                        }
                    };
                    drop(turn);
                    return opened;
                }
            }
        }
    }

    fn look_up(self: &Arc<Self>, key: &TrayKey) -> Result<Found, TrayError> {
        let (index, _) = self.kind(&key.tray_ns)?;
        let mut state = self.state.lock();
        let live = state.live.get(key).cloned();
        if let Some(live) = live {
            drop(state);
            return Ok(match live.is_retiring() {
                true => Found::Retiring(live),
                false => Found::Live(live),
            });
        }
        if index < state.closed {
            return Err(TrayError::Closing);
        }
        let opening = state.opening.entry(key.clone()).or_default();
        opening.holders += 1;
        let lock = Arc::clone(&opening.lock);
        Ok(Found::Absent(Opening {
            trays: Arc::clone(self),
            key: key.clone(),
            lock,
        }))
    }

    async fn read_and_open(
        self: &Arc<Self>,
        key: &TrayKey,
        absent: Absent,
    ) -> Result<Arc<dyn LiveTray>, TrayError> {
        let opened = async {
            self.catch_up(key).await?;
            let claim = self.frontier.claim();
            let row = self.frontier.store().get_tray(claim, key.clone()).await?;
            match row {
                None if absent == Absent::Refuse => Err(TrayError::NotFound(key.clone())),
                row => self.open(key.clone(), row).await,
            }
        };
        let opened = opened.await;
        if let Err(TrayError::Store(StoreError::FenceLost(_))) = &opened
            && let Some(owner) = self.owner.upgrade()
        {
            // D18.9: whoever reads at a lost epoch must not go on.
            owner.abort();
        }
        opened
    }

    async fn open(
        self: &Arc<Self>,
        key: TrayKey,
        row: Option<RowState>,
    ) -> Result<Arc<dyn LiveTray>, TrayError> {
        let (_, kind) = self.kind(&key.tray_ns)?;
        {
            let mut state = self.state.lock();
            if !state.started {
                state.opened_early.insert(key.clone());
            }
        }
        let live = Arc::clone(kind)
            .open(Arc::clone(self), key.clone(), row)
            .await?;
        let start = {
            let mut state = self.state.lock();
            state.live.insert(key, Arc::clone(&live));
            state.started
        };
        live.listed();
        if start {
            Arc::clone(&live).start();
        }
        Ok(live)
    }

    pub(super) fn remove(&self, key: &TrayKey) {
        let removed = self.state.lock().live.remove(key);
        // Its value is the user's, and may ask for anything when it is dropped.
        drop(removed);
    }

    /// The live trays of one name.
    pub(crate) fn live_of<W: Tray>(&self, name: &str) -> Vec<Arc<Core<W>>> {
        let typed = self
            .of_name(name)
            .into_iter()
            .filter_map(|live| live.into_any().downcast().ok());
        typed.collect()
    }

    fn of_name(&self, name: &str) -> Vec<Arc<dyn LiveTray>> {
        let state = self.state.lock();
        let of_name = state
            .live
            .values()
            .filter(|live| &*live.key().tray_ns == name);
        of_name.cloned().collect()
    }

    /// Lets a target go of a key; one that is there no more has (T13.10).
    pub(super) async fn forget_key(
        self: &Arc<Self>,
        target: &TrayKey,
        key: &Key,
    ) -> Result<(), TrayError> {
        loop {
            let found = match self.look_up(target) {
                // Declared no more: there is nothing left to let go of it.
                Err(TrayError::Undeclared(_)) => return Ok(()),
                found => found?,
            };
            let known = match found {
                // One that retires may be written to until its pump has wound down (T14.3). To wait for its end here
                // could be to wait for each other, should it have a key of ours to let go of.
                Found::Live(live) | Found::Retiring(live) => Ok(live),
                Found::Absent(_) => self.live(target, Absent::Refuse).await,
            };
            let live = match known {
                Ok(live) => live,
                Err(TrayError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            };
            match Arc::clone(&live).forget_key(key) {
                Err(TrayError::Closed(_)) => live.ended().await,
                Err(TrayError::Deleted(_)) => return Ok(()),
                outcome => return outcome,
            }
        }
    }

    /// Opens what an activation opens (T8), without starting anything yet.
    ///
    /// # Errors
    ///
    /// A row that no declaration knows, or that is not one of ours, and whatever the store says.
    pub(crate) async fn activate(self: &Arc<Self>) -> Result<(), TrayError> {
        // What the setup gave up may be marked.
        let given_up = self.state.lock().given_up.values().copied().max();
        if let Some(position) = given_up {
            self.frontier.wait_for(position).await?;
        }
        let store = self.frontier.store();
        let mut rows: Vec<Row> = store
            .list(self.frontier.claim(), RowFilter::marked())
            .await?;
        // T8.4: the first read of a row counts.
        let mut read: HashSet<TrayKey> = rows.iter().map(|row| row.key.clone()).collect();
        for kind in &self.kinds {
            if kind.form().is_always_open() {
                let filter = RowFilter::tray(kind.name());
                let listed = store.list(self.frontier.claim(), filter).await?;
                rows.extend(
                    listed
                        .into_iter()
                        .filter(|row| read.insert(row.key.clone())),
                );
            }
        }
        for row in &rows {
            self.check_row(&row.key)?;
        }
        for kind in &self.kinds {
            if kind.form() == super::settings::Form::Single {
                let key = TrayKey::new(kind.name(), SINGLE_ID);
                let place = rows.iter().position(|row| row.key == key);
                let row = place.map(|place| rows.remove(place).state);
                self.open_once(key, row).await?;
            }
        }
        for row in rows {
            self.open_once(row.key, Some(row.state)).await?;
        }
        Ok(())
    }

    /// The setup of the instance may have opened it already.
    async fn open_once(
        self: &Arc<Self>,
        key: TrayKey,
        row: Option<RowState>,
    ) -> Result<(), TrayError> {
        loop {
            let retiring = match self.look_up(&key)? {
                Found::Live(_) => return Ok(()),
                Found::Retiring(live) => live,
                Found::Absent(opening) => {
                    let turn = opening.lock.lock().await;
                    match self.look_up(&key)? {
                        Found::Live(_) => return Ok(()),
                        Found::Retiring(live) => live,
                        Found::Absent(_) => {
                            let early = self.state.lock().opened_early.contains(&key);
                            let opened = match early {
                                true => self.open_again(&key, row.is_some()).await,
                                false => self.open(key, row).await.map(drop),
                            };
                            drop(turn);
                            return opened;
                        }
                    }
                }
            };
            // It is opened again: nobody else would look after what it has to do.
            retiring.ended().await;
        }
    }

    /// Opens a tray that has been open, and closed, since its row was listed. One that was deleted meanwhile stays away,
    /// other than a single one without a row (T8.5).
    async fn open_again(
        self: &Arc<Self>,
        key: &TrayKey,
        was_listed: bool,
    ) -> Result<(), TrayError> {
        let absent = match was_listed {
            true => Absent::Refuse,
            false => Absent::Create,
        };
        match self.read_and_open(key, absent).await {
            Err(TrayError::NotFound(_)) => Ok(()),
            opened => opened.map(drop),
        }
    }

    /// T8.3
    fn check_row(&self, key: &TrayKey) -> Result<(), TrayError> {
        let malformed = |reason: &str| TrayError::Malformed {
            tray: key.clone(),
            entry: String::new(),
            reason: reason.to_owned(),
        };
        let (_, kind) = self.kind(&key.tray_ns)?;
        match kind.form() {
            super::settings::Form::Single if &*key.tray_id != SINGLE_ID => {
                Err(malformed("a single tray has the id `~`"))
            }
            _ if key.tray_id.is_empty() => Err(malformed("the id of a tray in a map is not empty")),
            _ => Ok(()),
        }
    }

    /// The instance is resident: what opens from here on starts at once, and what is open starts now, in the order of the
    /// declarations.
    pub(crate) fn start(&self) {
        {
            let mut state = self.state.lock();
            state.started = true;
            state.opened_early = HashSet::new();
        }
        for kind in &self.kinds {
            for live in self.of_name(kind.name()) {
                live.start();
            }
        }
    }

    /// Closes every tray with its instance, name by name (T17.3). Whether all went well, as far as the log does not say so
    /// itself.
    pub(crate) async fn close(&self) -> bool {
        let mut clean = true;
        for (index, kind) in self.kinds.iter().enumerate() {
            self.state.lock().closed = index + 1;
            until(&self.changed, || {
                let state = self.state.lock();
                !state.opening.keys().any(|key| *key.tray_ns == *kind.name())
            })
            .await;
            for live in self.of_name(kind.name()) {
                clean &= live.close().await;
            }
        }
        clean
    }
}

enum Found {
    Live(Arc<dyn LiveTray>),
    Retiring(Arc<dyn LiveTray>),
    Absent(Opening),
}

/// Somebody opens this tray, or waits to. The last one out takes the lock's entry along (T9.10).
struct Opening {
    trays: Arc<Trays>,
    key: TrayKey,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut state = self.trays.state.lock();
        if let Some(opening) = state.opening.get_mut(&self.key) {
            opening.holders -= 1;
            if opening.holders == 0 {
                state.opening.remove(&self.key);
            }
        }
        drop(state);
        self.trays.changed.notify_waiters();
    }
}
