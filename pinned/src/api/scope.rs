//! Whose call this is: the depth and the turns that a chain of calls holds.
//!
//! A scope follows the work of one request through every await (a task-local), so that a call made from deep inside
//! a handler, or through a context stored at setup, still knows what its ancestors hold. Work that the request
//! spawns inherits the depth and none of the turns: it outlives the handler that holds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::Either;

use super::refusal::Refusal;
use super::seam::{InstanceSeam, Seam, TurnKind, same_instance};

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
    seam: Seam,
    held: Held,
    depth: u32,
    parent: Option<Arc<Scope>>,
}

/// Where a request comes from.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    depth: u32,
    parent: Option<Arc<Scope>>,
}

impl Origin {
    /// A request from outside, whose verified token names its depth (W14.3).
    pub(crate) fn outside(depth: u32) -> Self {
        Self {
            depth,
            parent: None,
        }
    }

    /// The activation of `seam`'s instance, for whatever runs here and now. A request that activates its own instance
    /// is no link of its own: the setup is called by whoever called the request.
    pub(crate) fn activation(seam: &Seam) -> Self {
        CURRENT
            .try_with(|scope| {
                if same_instance(&scope.seam, seam) {
                    Self {
                        depth: scope.depth,
                        parent: scope.parent.clone(),
                    }
                } else {
                    Self::inside(scope.depth)
                }
            })
            .unwrap_or_default()
    }

    /// A call from the work that runs here and now.
    pub(crate) fn inside(depth: u32) -> Self {
        Self {
            depth,
            parent: CURRENT.try_with(|scope| Arc::new(scope.clone())).ok(),
        }
    }
}

/// What the chain that runs here and now holds of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainHold {
    Nothing,
    Shared,
    Exclusive,
}

impl Scope {
    pub(crate) fn new(seam: Seam, held: Held, origin: Origin) -> Self {
        Self {
            seam,
            held,
            depth: origin.depth,
            parent: origin.parent,
        }
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
            depth: current_depth(),
            parent: None,
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

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |scope| scope.parent.as_deref())
    }
}

/// The depth of the request that runs here and now, 0 without one.
pub(crate) fn current_depth() -> u32 {
    CURRENT.try_with(|scope| scope.depth).unwrap_or(0)
}

/// Takes the scope that runs here and now along to another task, which is a part of the same call.
pub(crate) fn carry<F: Future>(work: F) -> impl Future<Output = F::Output> {
    match CURRENT.try_with(Scope::clone) {
        Ok(scope) => Either::Left(scope.run(work)),
        Err(_) => Either::Right(work),
    }
}

/// What the chain that runs here and now holds of `seam`'s instance.
pub(crate) fn chain_hold(seam: &Seam) -> ChainHold {
    chain_hold_of(&**seam)
}

/// As [`chain_hold`], for whoever has no [`Seam`] at hand.
pub(crate) fn chain_hold_of(instance: &dyn InstanceSeam) -> ChainHold {
    CURRENT
        .try_with(|scope| {
            let mut hold = ChainHold::Nothing;
            for link in scope
                .chain()
                .filter(|link| std::ptr::addr_eq(&*link.seam, instance))
            {
                if link.holds(TurnKind::Exclusive) {
                    return ChainHold::Exclusive;
                }
                if link.holds(TurnKind::Shared) {
                    hold = ChainHold::Shared;
                }
            }
            hold
        })
        .unwrap_or(ChainHold::Nothing)
}

/// Refuses to wait for `seam`'s instance where the chain that runs here and now holds it: it would wait for itself.
pub(crate) fn refuse_wait_for_itself(seam: &Seam) -> Result<(), Refusal> {
    match chain_hold(seam) {
        ChainHold::Nothing => Ok(()),
        ChainHold::Shared | ChainHold::Exclusive => Err(Refusal::CallChain(describe_chain(
            seam,
            TurnKind::Exclusive,
        ))),
    }
}

/// Whether a handler, task or streaming body of `seam`'s instance runs here and now that takes turns as it needs them,
/// and is cut off by its close.
pub(crate) fn is_own_work(seam: &Seam) -> bool {
    CURRENT
        .try_with(|scope| matches!(scope.held, Held::Taken(_)) && same_instance(&scope.seam, seam))
        .unwrap_or(false)
}

/// The chain that runs here and now, from its first call to the wish for `kind` of `seam`'s instance.
pub(crate) fn describe_chain(seam: &Seam, kind: TurnKind) -> String {
    let wish = format!("{}/{} ({})", seam.namespace(), seam.id(), kind.as_str());
    let mut links = CURRENT
        .try_with(|scope| {
            let entering = |link: &&Scope| {
                matches!(link.held, Held::Nothing) && same_instance(&link.seam, seam)
            };
            let links = scope.chain().skip_while(entering);
            links.map(Scope::describe).collect::<Vec<_>>()
        })
        .unwrap_or_default();
    links.reverse();
    links.push(wish);
    format!("call chain would deadlock: {}", links.join(" -> "))
}

impl Scope {
    fn describe(&self) -> String {
        let held = if self.holds(TurnKind::Exclusive) {
            TurnKind::Exclusive.as_str()
        } else if self.holds(TurnKind::Shared) {
            TurnKind::Shared.as_str()
        } else {
            "no turn"
        };
        format!("{}/{} ({held})", self.seam.namespace(), self.seam.id())
    }
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
