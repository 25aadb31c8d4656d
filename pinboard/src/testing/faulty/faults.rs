//! What goes wrong, and when.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::{Domain, Rng};
use tokio::sync::watch;

use super::StoreOp;
use crate::store::{PlacementKey, StoreError};

type Script = Arc<dyn Fn(&StoreCall) -> Option<StoreFault> + Send + Sync>;

/// The other end of a [`FaultyStore`](super::FaultyStore): says what goes wrong with it, and tells how often it was asked.
///
/// At first nothing goes wrong, and no time passes. Clones are the same end.
#[derive(Clone)]
pub struct StoreFaults {
    shared: Arc<Shared>,
}

struct Shared {
    domain: Domain,
    dice: Rng,
    connection: watch::Sender<Connection>,
    plan: Mutex<Plan>,
}

/// Whether the store can be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Up,
    Cut(CutOff),
}

struct Plan {
    calls: u64,
    by_op: BTreeMap<StoreOp, u64>,
    next: BTreeMap<StoreOp, VecDeque<StoreFault>>,
    script: Option<Script>,
    before: f64,
    after: f64,
    latency: RangeInclusive<Duration>,
}

/// One call of an operation.
#[derive(Clone, Debug)]
pub struct StoreCall {
    /// Of which.
    pub op: StoreOp,
    /// Which call it is of all, from 1 on.
    pub index: u64,
    /// The id that it is about, when it is about one.
    pub key: Option<PlacementKey>,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// It fails, and nothing has happened.
    Before,
    /// It happens, and its answer is lost.
    After,
    /// It happens, and no answer ever comes.
    Silence,
}

/// How a store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Calls fail at once, as when connections are refused.
    Refused,
    /// Calls fail after so long, as when packets are lost.
    Silent(Duration),
}

/// What becomes of one call.
pub(super) struct Fate {
    pub(super) fault: Option<StoreFault>,
    pub(super) there: Duration,
    pub(super) back: Duration,
}

impl StoreFaults {
    pub(super) fn new(domain: Domain) -> Self {
        let Ok(dice) = domain.rng("faulty-store") else {
            unreachable!("the label is not empty")
        };
        let plan = Plan {
            calls: 0,
            by_op: BTreeMap::new(),
            next: BTreeMap::new(),
            script: None,
            before: 0.0,
            after: 0.0,
            latency: Duration::ZERO..=Duration::ZERO,
        };
        Self {
            shared: Arc::new(Shared {
                domain,
                dice,
                connection: watch::Sender::new(Connection::Up),
                plan: Mutex::new(plan),
            }),
        }
    }

    /// What goes wrong with the next call of `op`; given twice, with the next two.
    pub fn next(&self, op: StoreOp, fault: StoreFault) {
        let mut plan = self.shared.plan.lock();
        plan.next.entry(op).or_default().push_back(fault);
    }

    /// Settles by hand what goes wrong; what `script` has no opinion on is drawn. It is asked in the order of the calls.
    pub fn script(
        &self,
        script: impl Fn(&StoreCall) -> Option<StoreFault> + Send + Sync + 'static,
    ) {
        self.shared.plan.lock().script = Some(Arc::new(script));
    }

    /// The probabilities, from now on, that a call fails before it has happened, and that its answer is lost.
    ///
    /// # Panics
    ///
    /// When they are no probabilities, or add up to more than certainty.
    pub fn rates(&self, before: f64, after: f64) {
        let probable = |p: f64| (0.0..=1.0).contains(&p);
        assert!(
            probable(before) && probable(after) && probable(before + after),
            "{before} and {after} are no probabilities"
        );
        let mut plan = self.shared.plan.lock();
        (plan.before, plan.after) = (before, after);
    }

    /// How long a call takes at least and at most, each way, from now on.
    pub fn latency(&self, each_way: RangeInclusive<Duration>) {
        self.shared.plan.lock().latency = each_way;
    }

    /// Nothing goes wrong any more, and no time passes; a store that is cut off stays so.
    pub fn calm(&self) {
        let mut plan = self.shared.plan.lock();
        plan.next.clear();
        plan.script = None;
        (plan.before, plan.after) = (0.0, 0.0);
        plan.latency = Duration::ZERO..=Duration::ZERO;
    }

    /// Cuts the node off from the store. A call that is under way may have happened or not; invalidations are lost.
    pub fn cut(&self, how: CutOff) {
        self.shared.connection.send_replace(Connection::Cut(how));
    }

    /// Connects it again. It is told to forget everything, because it may have missed something.
    pub fn restore(&self) {
        self.shared.connection.send_replace(Connection::Up);
    }

    /// How often `op` was called.
    #[must_use]
    pub fn calls(&self, op: StoreOp) -> u64 {
        let plan = self.shared.plan.lock();
        plan.by_op.get(&op).copied().unwrap_or_default()
    }

    /// How many calls there were of all operations: round trips, as far as a node makes them.
    #[must_use]
    pub fn all_calls(&self) -> u64 {
        self.shared.plan.lock().calls
    }

    /// Counts a call, and settles what becomes of it.
    pub(super) fn fate(&self, op: StoreOp, key: Option<&PlacementKey>) -> Fate {
        let (call, next, script) = {
            let mut plan = self.shared.plan.lock();
            plan.calls += 1;
            *plan.by_op.entry(op).or_default() += 1;
            let call = StoreCall {
                op,
                index: plan.calls,
                key: key.cloned(),
            };
            let next = plan.next.get_mut(&op).and_then(VecDeque::pop_front);
            (call, next, plan.script.clone())
        };
        let settled = next.or_else(|| script.and_then(|script| script(&call)));
        let plan = self.shared.plan.lock();
        let dice = &self.shared.dice;
        let drawn = || match dice.uniform(0.0..1.0) {
            drawn if drawn < plan.before => Some(StoreFault::Before),
            drawn if drawn < plan.before + plan.after => Some(StoreFault::After),
            _ => None,
        };
        let latency = || {
            let (low, high) = (*plan.latency.start(), *plan.latency.end());
            low + high.saturating_sub(low).mul_f64(dice.uniform(0.0..1.0))
        };
        Fate {
            fault: settled.or_else(drawn),
            there: latency(),
            back: latency(),
        }
    }

    /// Takes the way to the store, or from it.
    pub(super) async fn travel(&self, takes: Duration) -> Result<(), StoreError> {
        if !takes.is_zero() {
            self.shared.domain.sleep(takes).await;
        }
        let connection = *self.shared.connection.borrow();
        match connection {
            Connection::Up => Ok(()),
            Connection::Cut(CutOff::Refused) => Err(failed("the connection is refused")),
            Connection::Cut(CutOff::Silent(after)) => {
                self.shared.domain.sleep(after).await;
                Err(failed("no answer came in time"))
            }
        }
    }

    pub(super) fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    pub(super) fn domain(&self) -> &Domain {
        &self.shared.domain
    }
}

/// What a call that went wrong comes to.
pub(super) fn failed(why: &'static str) -> StoreError {
    StoreError::unavailable(why)
}

impl fmt::Debug for StoreFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.shared.plan.lock();
        f.debug_struct("StoreFaults")
            .field("calls", &plan.calls)
            .field("before", &plan.before)
            .field("after", &plan.after)
            .field("latency", &plan.latency)
            .finish_non_exhaustive()
    }
}
