//! Who holds which id.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::SessionId;

/// An id, with the namespace and the environment that it is in: what at most one session holds at a time.
///
/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlacementKey {
    /// The environment; `*` in single mode.
    pub env: Arc<str>,
    /// The namespace, with the slash.
    pub ns: Arc<str>,
    /// The id.
    pub id: Arc<str>,
}

impl PlacementKey {
    /// The environment of everything in single mode.
    pub const SINGLE: &str = "*";

    /// An id in an environment.
    pub fn new(env: impl Into<Arc<str>>, ns: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self {
            env: env.into(),
            ns: ns.into(),
            id: id.into(),
        }
    }

    /// An id in single mode.
    pub fn single(ns: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self::new(Self::SINGLE, ns, id)
    }
}

impl fmt::Display for PlacementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ns, self.id)
    }
}

impl fmt::Debug for PlacementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.env, self.ns, self.id)
    }
}

/// A placement row: who holds an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The holder.
    pub session: SessionId,
    /// The placement epoch under which it holds.
    pub epoch: u64,
    /// Whether the holder got or confirmed it in this life of the store. A row from before the store was last started is
    /// perhaps that of a copy, and its holder may have handed the id over since (P4.4): it is no place for a request.
    pub current: bool,
    /// Set while the holder is being asked to let go.
    pub fence: Option<FenceState>,
}

/// An order to a row: from `starts_in` on, requests for it are refused until it is released, or `ends_in` has passed as well. Then
/// they go to the holder again, if that lives: it is taken from nobody who may have begun it since (P4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// When refusals begin, from now.
    pub starts_in: Duration,
    /// When they end, from now; never before `starts_in`.
    pub ends_in: Duration,
}

/// A [`Fence`] as it stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceState {
    /// Requests still go to the holder, for this long.
    Ahead {
        /// What is left until refusals begin.
        starts_in: Duration,
        /// What is left until refusals end.
        ends_in: Duration,
    },
    /// Requests are refused, for this long at most.
    Standing {
        /// What is left until refusals end.
        ends_in: Duration,
    },
    /// Requests go to the holder again.
    Passed,
}

/// One attempt to place an id: a compare-and-set on its row.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What to place.
    pub key: PlacementKey,
    /// On whom.
    pub candidate: SessionId,
    /// What the row must be for the claim to succeed.
    pub expected: Expected,
    /// The new epoch is above this one too: what the durable store has seen (0 when there is nothing to know).
    pub above: u64,
}

/// What a row must be for a [`Claim`] to succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nobody holds the id, or what stands there is a remembered release whose preference is the candidate.
    Vacant,
    /// As [`Expected::Vacant`], whomever a remembered release prefers.
    VacantForAnyone,
    /// Exactly this session at this epoch holds it, and is dead.
    HeldByDead {
        /// The holder that was read.
        session: SessionId,
        /// Its epoch.
        epoch: u64,
    },
}

/// What came of a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The candidate holds the id, under this new epoch.
    Placed {
        /// Higher than any epoch that the id ever had.
        epoch: u64,
        /// Whether a dead or fenced holder lost it.
        replaced: bool,
    },
    /// Somebody holds it: the row as it stands.
    ///
    /// With [`Expected::Vacant`] nothing is said of whether the holder lives. With [`Expected::HeldByDead`], either the
    /// row has changed, or its holder is alive after all.
    Held(Row),
    /// It was released a moment after its placement, and goes back to this session if that one still takes ids
    /// (see [`Release`]).
    Preferred(SessionId),
    /// The candidate's session has ended.
    CandidateGone,
    /// Nothing new is placed for this long: the fleet has just started, or its store has lost what it knew (P4.4).
    Quarantined {
        /// What is left of it.
        ends_in: Duration,
    },
}

/// A placement handed back.
///
/// When it comes within a second of its placement, the row is remembered for five more as free with a preference for
/// the same session at the next epoch, so that traffic that is turned away at the door does not churn the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Who holds it.
    pub session: SessionId,
    /// What.
    pub key: PlacementKey,
    /// Under which epoch; any, when it is not given.
    pub epoch: Option<u64>,
}

/// What became of an instance that a worker says lives in it (P2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// Its row names the new session now, under the epoch that it had.
    Moved {
        /// That epoch.
        epoch: u64,
    },
    /// It had no row, or one of a dead session, and has one now, under a fresh epoch.
    Claimed {
        /// That epoch.
        epoch: u64,
    },
    /// Another session that lives holds it.
    Duplicate,
}

/// What a node must forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// The row of one id has changed.
    Row(PlacementKey),
    /// Anything may have changed: the connection was lost, or too much happened at once.
    Everything,
}
