//! The chain of calls that led to what runs here and now, and what it holds: by this a wait for oneself is seen before
//! it begins.
//!
//! A chain is a list of callers, each waiting for the next. On one worker a caller is the scope of its work itself, so
//! that what it holds is known as it stands now. To other workers it goes as names (`pinned_wire::chain`), and a call
//! that leaves this worker is written down under a number (`OpenCalls`): when the chain comes back, the number leads to
//! the very scope again. So a name alone never counts as a turn that is held, and neither does a call that its caller
//! has given up.

mod open_calls;

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinned_wire::chain::{self, Link};

pub(crate) use open_calls::OpenCalls;

use super::refusal::Refusal;
use super::scope::{Scope, current, current_depth, with_current};
use super::seam::{InstanceSeam, Seam, TurnKind, same_instance};

/// Who made a call.
pub(crate) enum Caller {
    /// Work of this worker.
    Here {
        scope: Scope,
        /// Whether it still waits for the answer: whoever does not is held up by nothing that the call does.
        waits: AtomicBool,
    },
    /// Work elsewhere: a name, which holds nothing here.
    Elsewhere {
        link: Link,
        caller: Option<Arc<Caller>>,
    },
}

/// Where a request comes from.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    pub(super) depth: u32,
    pub(super) caller: Option<Arc<Caller>>,
}

/// What a chain holds of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainHold {
    Nothing,
    Shared,
    Exclusive,
}

impl Origin {
    /// A request from outside, whose verified token names its depth and its chain (W14.3), outermost first.
    ///
    /// It is no less deep than what is known here of its callers makes it, whatever the worker says that it comes from: so
    /// no chain grows without end.
    pub(crate) fn outside(depth: u32, chain: &[String], calls: &OpenCalls) -> Self {
        let caller = calls.recall(chain);
        let known = caller.as_ref().map_or(0, |caller| caller.known_depth());
        Self {
            depth: depth.max(known),
            caller,
        }
    }

    /// The activation of `seam`'s instance, for whatever runs here and now and waits for it until the mark is dropped. A
    /// request that activates its own instance is no link of its own: the setup is called by whoever called the request.
    pub(crate) fn activation(seam: &Seam) -> (Self, Waiting) {
        let own =
            with_current(|scope| same_instance(&scope.seam, seam).then(|| scope.origin.clone()));
        match own.flatten() {
            Some(origin) => (origin, Waiting(None)),
            None => Self::call(current_depth()),
        }
    }

    /// Whatever runs here and now, which waits for as long as it asks.
    pub(crate) fn inside() -> Self {
        let Some(scope) = current() else {
            return Self::default();
        };
        Self {
            depth: scope.origin.depth,
            caller: Some(Arc::new(Caller::waiting(scope))),
        }
    }

    /// A call at `depth` by whatever runs here and now, which waits for it until the mark is dropped.
    pub(crate) fn call(depth: u32) -> (Self, Waiting) {
        let caller = current().map(|scope| Arc::new(Caller::waiting(scope)));
        let waiting = Waiting(caller.clone());
        (Self { depth, caller }, waiting)
    }

    /// Whether anybody is known to have called.
    pub(crate) fn is_called(&self) -> bool {
        self.caller.is_some()
    }

    /// What the callers hold of `instance`.
    pub(crate) fn hold(&self, instance: &dyn InstanceSeam) -> ChainHold {
        Steps::of_callers(self.caller.as_ref()).hold(instance)
    }

    /// Refuses to wait for `seam`'s instance where a caller holds it.
    pub(crate) fn refuse_wait_for_itself(&self, seam: &Seam) -> Result<(), Refusal> {
        match self.hold(&**seam) {
            ChainHold::Nothing => Ok(()),
            ChainHold::Shared | ChainHold::Exclusive => {
                Scope::entering(Arc::clone(seam), self.clone())
                    .enter(|| refuse_wait_for_itself(seam))
            }
        }
    }
}

impl Caller {
    fn waiting(scope: Scope) -> Self {
        Self::Here {
            scope,
            waits: AtomicBool::new(true),
        }
    }

    /// Whether it is work of the instance `name` on this worker.
    fn is_named(&self, name: &str) -> bool {
        match self {
            Self::Here { scope, .. } => {
                let (ns, id) = (scope.seam.namespace(), scope.seam.id());
                name.strip_prefix(ns)
                    .and_then(|rest| rest.strip_prefix('/'))
                    == Some(id)
            }
            Self::Elsewhere { .. } => false,
        }
    }

    /// How deep a call by it is at least.
    fn known_depth(&self) -> u32 {
        let mut caller = self;
        loop {
            match caller {
                Self::Here { scope, .. } => return scope.origin.depth.saturating_add(1),
                Self::Elsewhere { caller: None, .. } => return 0,
                Self::Elsewhere {
                    caller: Some(before),
                    ..
                } => caller = before,
            }
        }
    }

    fn gives_up(&self) {
        if let Self::Here { waits, .. } = self {
            waits.store(false, Ordering::Release);
        }
    }
}

/// A caller waits for as long as this lives.
#[must_use = "the caller waits no longer once this is dropped"]
pub(crate) struct Waiting(Option<Arc<Caller>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(caller) = &self.0 {
            caller.gives_up();
        }
    }
}

/// One member of a chain.
enum Step<'a> {
    Here(&'a Scope),
    Elsewhere(&'a Link),
}

/// A chain from what runs here and now to its first call, as far as each still waits for the next.
struct Steps<'a> {
    scope: Option<&'a Scope>,
    caller: Option<&'a Arc<Caller>>,
}

impl<'a> Steps<'a> {
    fn of(scope: &'a Scope) -> Self {
        Self {
            scope: Some(scope),
            caller: None,
        }
    }

    fn of_callers(caller: Option<&'a Arc<Caller>>) -> Self {
        Self {
            scope: None,
            caller,
        }
    }

    fn hold(self, instance: &dyn InstanceSeam) -> ChainHold {
        let mut hold = ChainHold::Nothing;
        for step in self {
            let Step::Here(scope) = step else {
                continue;
            };
            if !std::ptr::addr_eq(&*scope.seam, instance) {
                continue;
            }
            match scope.hold() {
                Some(TurnKind::Exclusive) => return ChainHold::Exclusive,
                Some(TurnKind::Shared) => hold = ChainHold::Shared,
                None => {}
            }
        }
        hold
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        if let Some(scope) = self.scope.take() {
            self.caller = scope.origin.caller.as_ref();
            return Some(Step::Here(scope));
        }
        match &**self.caller.take()? {
            Caller::Here { scope, waits } => {
                if !waits.load(Ordering::Acquire) {
                    return None;
                }
                self.caller = scope.origin.caller.as_ref();
                Some(Step::Here(scope))
            }
            Caller::Elsewhere { link, caller } => {
                self.caller = caller.as_ref();
                Some(Step::Elsewhere(link))
            }
        }
    }
}

impl Step<'_> {
    /// As other workers are told of it.
    #[cfg(feature = "fleet")]
    fn link(&self) -> Link {
        match self {
            Self::Here(scope) => {
                let held = match scope.hold() {
                    None => chain::Held::Nothing,
                    Some(TurnKind::Shared) => chain::Held::Shared,
                    Some(TurnKind::Exclusive) => chain::Held::Exclusive,
                };
                Link::new(scope.seam.namespace(), scope.seam.id(), held)
            }
            Self::Elsewhere(link) => (*link).clone(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Here(scope) => {
                let held = scope.hold().map_or("no turn", TurnKind::as_str);
                format!("{}/{} ({held})", scope.seam.namespace(), scope.seam.id())
            }
            Self::Elsewhere(link) => {
                let held = match link.held() {
                    chain::Held::Nothing => "no turn",
                    chain::Held::Shared => TurnKind::Shared.as_str(),
                    chain::Held::Exclusive => TurnKind::Exclusive.as_str(),
                };
                format!("{} ({held})", link.name())
            }
        }
    }
}

/// What the chain that runs here and now holds of `seam`'s instance.
pub(crate) fn chain_hold(seam: &Seam) -> ChainHold {
    chain_hold_of(&**seam)
}

/// As [`chain_hold`], for whoever has no [`Seam`] at hand.
pub(crate) fn chain_hold_of(instance: &dyn InstanceSeam) -> ChainHold {
    with_current(|scope| Steps::of(scope).hold(instance)).unwrap_or(ChainHold::Nothing)
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

/// The chain that runs here and now, from its first call to the wish for `kind` of `seam`'s instance.
pub(crate) fn describe_chain(seam: &Seam, kind: TurnKind) -> String {
    let mut links = with_current(|scope| {
        let entering = |step: &Step<'_>| match step {
            Step::Here(scope) => scope.is_entering() && same_instance(&scope.seam, seam),
            Step::Elsewhere(_) => false,
        };
        let steps = Steps::of(scope).skip_while(entering);
        steps.map(|step| step.describe()).collect::<Vec<_>>()
    })
    .unwrap_or_default();
    links.reverse();
    let mut text = "call chain would deadlock: ".to_owned();
    for link in links {
        text += &link;
        text += " -> ";
    }
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{}/{} ({})",
        seam.namespace(),
        seam.id(),
        kind.as_str()
    );
    text
}
