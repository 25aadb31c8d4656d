//! How requests found their worker.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, counter};
use serde::{Serialize, Serializer};

use super::names;

/// How a request found its worker, or why it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// This node knew the holder, or was already finding it out for another request.
    Cached,
    /// The store named a holder that lives.
    Held,
    /// Nobody held the id; it was placed.
    Placed,
    /// It was taken from a holder that is dead.
    Replaced,
    /// No worker can take it.
    NoBackends,
    /// Nothing new is placed for a while.
    Quarantined,
    /// Its holder is being asked to let go.
    Fenced,
    /// Another hostname holds it, and does not share (P9.3).
    Denied,
}

impl Resolution {
    /// All of them, in the order of [`ResolutionCounts::iter`].
    pub const ALL: [Self; 8] = [
        Self::Cached,
        Self::Held,
        Self::Placed,
        Self::Replaced,
        Self::NoBackends,
        Self::Quarantined,
        Self::Fenced,
        Self::Denied,
    ];

    /// The value of the label `outcome`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Held => "held",
            Self::Placed => "placed",
            Self::Replaced => "replaced",
            Self::NoBackends => "no-backends",
            Self::Quarantined => "quarantined",
            Self::Fenced => "fenced",
            Self::Denied => "denied",
        }
    }
}

/// Counts resolutions: for the metrics, and for whoever asks this node (P3.3).
pub struct Resolutions {
    counters: [Both; Resolution::ALL.len()],
}

/// One count, kept twice, because a facade cannot be read.
struct Both {
    own: AtomicU64,
    facade: Counter,
}

impl Resolutions {
    /// Counts from zero, into the recorder that is installed now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counters: Resolution::ALL.map(|resolution| Both {
                own: AtomicU64::new(0),
                facade: counter!(names::RESOLUTIONS, "outcome" => resolution.as_str()),
            }),
        }
    }

    /// Counts one.
    pub fn count(&self, resolution: Resolution) {
        let both = &self.counters[resolution as usize];
        both.own.fetch_add(1, Ordering::Relaxed);
        both.facade.increment(1);
    }

    /// How many there were of each.
    #[must_use]
    pub fn counts(&self) -> ResolutionCounts {
        ResolutionCounts {
            counts: std::array::from_fn(|at| self.counters[at].own.load(Ordering::Relaxed)),
        }
    }
}

impl Default for Resolutions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Resolutions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolutions").field(&self.counts()).finish()
    }
}

/// How many resolutions of each kind there have been. Serializes as an object, `{"cached": 12, ...}`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ResolutionCounts {
    counts: [u64; Resolution::ALL.len()],
}

impl ResolutionCounts {
    /// How many there were of one kind.
    #[must_use]
    pub fn of(&self, resolution: Resolution) -> u64 {
        self.counts[resolution as usize]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Resolution, u64)> {
        Resolution::ALL.into_iter().zip(self.counts)
    }
}

impl fmt::Debug for ResolutionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().filter(|(_, count)| *count > 0))
            .finish()
    }
}

impl Serialize for ResolutionCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter()
                .map(|(resolution, count)| (resolution.as_str(), count)),
        )
    }
}
