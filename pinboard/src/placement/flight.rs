//! Finding something out once for all who ask at the same time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{NotPlaced, Placed};
use crate::store::{PlacementKey, SessionId};

/// How many parts the flights are split into that do not wait for each other.
const SHARDS: usize = 64;

/// What a flight comes to; `None` when a refusal stands.
pub(super) type Outcome = Result<Option<Arc<Placed>>, NotPlaced>;

/// What is being found out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlightKey {
    pub(super) key: PlacementKey,
    pub(super) errand: Errand,
}

/// Those who have seen a refusal must not join those who have not: what these read may be older than the refusal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Errand {
    /// Who holds it; a new epoch is above this one.
    Resolve { above: u64 },
    /// Who holds it after this holder would not.
    Replace { session: SessionId, epoch: u64 },
    /// Who holds it once this holder has let go.
    Move { session: SessionId, epoch: u64 },
}

pub(super) type SharedFlight = Shared<BoxFuture<'static, Outcome>>;

/// The flights that are under way.
///
/// A flight has no task: whoever waits for it drives it, and when nobody does any more it ends where it is.
pub(super) struct Flights {
    shards: [Mutex<HashMap<FlightKey, Flight, RandomState>>; SHARDS],
    next: AtomicU64,
}

struct Flight {
    number: u64,
    outcome: WeakShared<BoxFuture<'static, Outcome>>,
    /// Until when those who have joined wait.
    until: Instant,
}

/// How someone who asks is answered.
pub(super) enum Boarded {
    /// It was known by now.
    Known(Arc<Placed>),
    /// Someone else had asked already.
    Joined(SharedFlight),
    /// They are the first.
    Started(SharedFlight),
}

/// A flight, as the one that it is: takes it off the list when it ends, in whichever way.
pub(super) struct Landing {
    flights: Arc<Flights>,
    key: FlightKey,
    shard: u64,
    number: u64,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            next: AtomicU64::new(0),
        }
    }

    /// Joins the flight for `key`, or starts it with `body`; one that waits for something does so until `until` at least. Flights
    /// of one id are in one `shard`.
    ///
    /// `known` is asked once more when there is none: a flight that has just landed leaves what it found there before it
    /// leaves the list.
    pub(super) fn board(
        self: &Arc<Self>,
        key: FlightKey,
        shard: u64,
        until: Instant,
        known: impl FnOnce() -> Option<Arc<Placed>>,
        body: impl FnOnce(Landing) -> BoxFuture<'static, Outcome>,
    ) -> Boarded {
        let mut flights = self.shard(shard).lock();
        if let Some(flight) = flights.get_mut(&key)
            && let Some(outcome) = flight.outcome.upgrade()
        {
            flight.until = flight.until.max(until);
            return Boarded::Joined(outcome);
        }
        if let Some(placed) = known() {
            return Boarded::Known(placed);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let outcome = body(Landing {
            flights: Arc::clone(self),
            key: key.clone(),
            shard,
            number,
        })
        .shared();
        if let Some(weak) = outcome.downgrade() {
            let flight = Flight {
                number,
                outcome: weak,
                until,
            };
            flights.insert(key, flight);
        }
        Boarded::Started(outcome)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn shard(&self, of: u64) -> &Mutex<HashMap<FlightKey, Flight, RandomState>> {
        &self.shards[of as usize % SHARDS]
    }
}

impl Landing {
    /// The id that it is about.
    pub(super) fn key(&self) -> &PlacementKey {
        &self.key.key
    }

    /// Whether nobody who has joined waits any longer. Then the flight is off the list, and nobody joins it now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let mut flights = self.flights.shard(self.shard).lock();
        match flights.get(&self.key) {
            Some(flight) if flight.number == self.number && now < flight.until => false,
            Some(flight) if flight.number == self.number => {
                flights.remove(&self.key);
                true
            }
            _ => true,
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut flights = self.flights.shard(self.shard).lock();
        // Another may have taken its place, once nobody drove this one.
        if let Some(flight) = flights.get(&self.key)
            && flight.number == self.number
        {
            flights.remove(&self.key);
        }
    }
}
