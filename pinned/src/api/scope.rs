//! Whose call this is: the depth and the turns that a chain of calls holds.
//!
//! A scope follows the work of one request through every await (a task-local), so that a call made from deep inside
//! a handler, or through a context stored at setup, still knows what its ancestors hold. Work that the request
//! spawns inherits the depth and none of the turns: it outlives the handler that holds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::Either;

use super::chain::Origin;
use super::seam::{Seam, TurnKind, same_instance};

tokio::task_local! {
    static CURRENT: Scope;
}

/// The turns that the handler of one scope holds.
#[derive(Clone)]
pub(crate) enum Held {
    /// None, and it can take none.
    Nothing,
    /// For as long as it runs.
    Whole(TurnKind),
    /// Those it takes and gives back through its `Instance`.
    Taken(Arc<TakenTurns>),
    /// The same, in work that a close waits for instead of cutting it off: it is told when there are no turns any more.
    TakenToTheEnd(Arc<TakenTurns>),
}

/// How many turns of each kind a handler holds at the moment.
#[derive(Default)]
pub(crate) struct TakenTurns {
    shared: AtomicU32,
    exclusive: AtomicU32,
}

impl TakenTurns {
    fn counter(&self, kind: TurnKind) -> &AtomicU32 {
        match kind {
            TurnKind::Shared => &self.shared,
            TurnKind::Exclusive => &self.exclusive,
        }
    }
}

/// One call in a chain.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(super) seam: Seam,
    held: Held,
    pub(super) origin: Origin,
}

impl Scope {
    pub(crate) fn new(seam: Seam, held: Held, origin: Origin) -> Self {
        Self { seam, held, origin }
    }

    /// A request before its handler: it is authorized, its arguments are read, its instance is activated. What runs
    /// there has the depth of the request and holds none of its turns yet.
    pub(crate) fn entering(seam: Seam, origin: Origin) -> Self {
        Self::new(seam, Held::Nothing, origin)
    }

    /// A task that this scope's request spawns, or the streaming body that it answers with: it outlives the handler and
    /// its turn, and may take turns of its own.
    pub(crate) fn outliving(seam: Seam) -> Self {
        Self {
            seam,
            held: Held::Taken(Arc::default()),
            origin: Origin {
                depth: current_depth(),
                caller: None,
            },
        }
    }

    /// Runs `step` under this scope.
    pub(crate) fn enter<R>(&self, step: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self.clone(), step)
    }

    /// Runs `work` under this scope.
    pub(crate) fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    fn holds(&self, kind: TurnKind) -> bool {
        match &self.held {
            Held::Nothing => false,
            Held::Whole(held) => *held == kind,
            Held::Taken(taken) | Held::TakenToTheEnd(taken) => {
                taken.counter(kind).load(Ordering::Acquire) > 0
            }
        }
    }

    /// The turn that it holds at the moment, the exclusive one first.
    pub(super) fn hold(&self) -> Option<TurnKind> {
        [TurnKind::Exclusive, TurnKind::Shared]
            .into_iter()
            .find(|kind| self.holds(*kind))
    }

    /// Whether it is a request before its handler.
    pub(super) fn is_entering(&self) -> bool {
        matches!(self.held, Held::Nothing)
    }
}

/// Looks at the scope that runs here and now; `None` without one.
pub(super) fn with_current<R>(look: impl FnOnce(&Scope) -> R) -> Option<R> {
    CURRENT.try_with(look).ok()
}

/// The scope that runs here and now.
pub(super) fn current() -> Option<Scope> {
    with_current(Scope::clone)
}

/// The depth of the request that runs here and now, 0 without one.
pub(crate) fn current_depth() -> u32 {
    with_current(|scope| scope.origin.depth).unwrap_or(0)
}

/// Takes the scope that runs here and now along to another task, which is a part of the same call.
pub(crate) fn carry<F: Future>(work: F) -> impl Future<Output = F::Output> {
    match current() {
        Some(scope) => Either::Left(scope.run(work)),
        None => Either::Right(work),
    }
}

/// Whether a handler, task or streaming body of `seam`'s instance runs here and now that takes turns as it needs them,
/// and is cut off by its close.
pub(crate) fn is_own_work(seam: &Seam) -> bool {
    CURRENT
        .try_with(|scope| matches!(scope.held, Held::Taken(_)) && same_instance(&scope.seam, seam))
        .unwrap_or(false)
}

/// Notes, for as long as it lives, that the running handler of an instance holds a turn of it.
pub(crate) struct HoldMark {
    taken: Arc<TakenTurns>,
    kind: TurnKind,
}

impl HoldMark {
    /// `None` when no handler of `seam`'s instance runs here and now.
    pub(crate) fn note(seam: &Seam, kind: TurnKind) -> Option<Self> {
        CURRENT
            .try_with(|scope| match &scope.held {
                Held::Taken(taken) | Held::TakenToTheEnd(taken)
                    if same_instance(&scope.seam, seam) =>
                {
                    Some(Arc::clone(taken))
                }
                _ => None,
            })
            .ok()
            .flatten()
            .map(|taken| {
                taken.counter(kind).fetch_add(1, Ordering::AcqRel);
                Self { taken, kind }
            })
    }
}

impl Drop for HoldMark {
    fn drop(&mut self) {
        self.taken.counter(self.kind).fetch_sub(1, Ordering::AcqRel);
    }
}
