//! What lived where, and when; and the checker of the promise that nothing lives twice (P4.6).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::InstanceKey;

/// The activations of all workers that it was given to, by one clock. Clones are the same log.
///
/// An activation is *live* while it has begun and not ended, and the lease of its worker runs: a worker whose lease has
/// passed keeps its instances, and serves none of them. The lease is what the worker was granted, by the clock that all share,
/// whatever a worker whose clock was stopped believes.
#[derive(Clone, Default)]
pub struct ActivationLog {
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    activations: Vec<Activation>,
    leases: BTreeMap<Arc<str>, Vec<Lease>>,
}

/// One activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The name of the worker.
    pub worker: Arc<str>,
    /// The instance.
    pub key: InstanceKey,
    /// The placement epoch that it began with.
    pub epoch: Option<u64>,
    /// When it began.
    pub begun: Instant,
    /// When it ended; `None` while it has not.
    pub ended: Option<Instant>,
}

/// Two activations of one instance, live at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// That which began first.
    pub first: Activation,
    /// The other one.
    pub second: Activation,
    /// From when on both were live.
    pub from: Instant,
}

/// For how long a worker may serve.
#[derive(Clone, Copy)]
struct Lease {
    from: Instant,
    until: Instant,
}

/// Where an activation stands in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

impl ActivationLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn begin(
        &self,
        worker: &Arc<str>,
        key: InstanceKey,
        epoch: Option<u64>,
        now: Instant,
    ) -> Place {
        let activations = &mut self.entries.lock().activations;
        activations.push(Activation {
            worker: Arc::clone(worker),
            key,
            epoch,
            begun: now,
            ended: None,
        });
        Place(activations.len() - 1)
    }

    pub(super) fn end(&self, place: Place, now: Instant) {
        if let Some(activation) = self.entries.lock().activations.get_mut(place.0) {
            activation.ended.get_or_insert(now);
        }
    }

    /// Notes that the lease of `worker` runs from `now` to `until`.
    pub(super) fn renew(&self, worker: &Arc<str>, now: Instant, until: Instant) {
        let mut entries = self.entries.lock();
        let leases = entries.leases.entry(Arc::clone(worker)).or_default();
        match leases.last_mut() {
            Some(lease) if lease.until >= now => lease.until = lease.until.max(until),
            _ => leases.push(Lease { from: now, until }),
        }
    }

    /// Every activation so far, in the order in which they began.
    #[must_use]
    pub fn activations(&self) -> Vec<Activation> {
        self.entries.lock().activations.clone()
    }

    /// Those that have not ended.
    #[must_use]
    pub fn running(&self) -> Vec<Activation> {
        let entries = self.entries.lock();
        let running = entries.activations.iter().filter(|a| a.ended.is_none());
        running.cloned().collect()
    }

    /// Every pair of activations of one instance that were live at the same time; one that is still live counts as such for
    /// as long as its lease runs. A test that promises anything ends with this being empty.
    #[must_use]
    pub fn overlaps(&self) -> Vec<Overlap> {
        let entries = self.entries.lock();
        let mut spans: BTreeMap<&InstanceKey, Vec<Span<'_>>> = BTreeMap::new();
        for (place, activation) in entries.activations.iter().enumerate() {
            let of_key = spans.entry(&activation.key).or_default();
            entries.spans(place, activation, |span| of_key.push(span));
        }
        let mut overlaps = Vec::new();
        for mut of_key in spans.into_values() {
            of_key.sort_by_key(|span| (span.from, span.place));
            let mut open: Vec<Span<'_>> = Vec::new();
            for span in of_key {
                open.retain(|other| other.until.is_none_or(|until| until > span.from));
                for other in open.iter().filter(|other| other.place != span.place) {
                    let (first, second) = if other.place < span.place {
                        (other.activation, span.activation)
                    } else {
                        (span.activation, other.activation)
                    };
                    overlaps.push(Overlap {
                        first: first.clone(),
                        second: second.clone(),
                        from: span.from,
                    });
                }
                open.push(span);
            }
        }
        overlaps
    }

    /// Panics when anything lived twice.
    ///
    /// # Panics
    ///
    /// When [`overlaps`](Self::overlaps) finds something.
    #[track_caller]
    pub fn assert_no_overlap(&self) {
        let overlaps = self.overlaps();
        assert!(
            overlaps.is_empty(),
            "P4.6: {} times an instance lived twice, such as: {}",
            overlaps.len(),
            overlaps[0]
        );
    }
}

/// Some time during which an activation was live.
struct Span<'a> {
    place: usize,
    activation: &'a Activation,
    from: Instant,
    /// `None` when there is no end yet.
    until: Option<Instant>,
}

impl Entries {
    /// The times at which `activation` was live.
    fn spans<'a>(&self, place: usize, activation: &'a Activation, mut each: impl FnMut(Span<'a>)) {
        let span = |from, until| Span {
            place,
            activation,
            from,
            until,
        };
        // A worker that never registered has no lease to run out.
        let Some(leases) = self.leases.get(&activation.worker) else {
            each(span(activation.begun, activation.ended));
            return;
        };
        for lease in leases {
            let from = activation.begun.max(lease.from);
            let until = activation.ended.map_or(lease.until, |e| e.min(lease.until));
            if from < until {
                each(span(from, Some(until)));
            }
        }
    }
}

impl fmt::Debug for ActivationLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivationLog")
            .field("activations", &self.entries.lock().activations.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, .. } = self;
        write!(
            f,
            "{} on {} at epoch {:?} and on {} at epoch {:?}, begun {:?} later; the first had ended {:?} after its begin",
            first.key,
            first.worker,
            first.epoch,
            second.worker,
            second.epoch,
            second.begun.saturating_duration_since(first.begun),
            first.ended.map(|ended| ended - first.begun),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pinned_domain::Domain;

    use super::*;

    struct Story {
        log: ActivationLog,
        start: Instant,
    }

    impl Story {
        fn new() -> Self {
            Self {
                log: ActivationLog::new(),
                start: Domain::real().monotonic(),
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn lives(&self, worker: &str, from: u64, until: Option<u64>) {
            let key = InstanceKey::new("/counters", "alice");
            let place = self
                .log
                .begin(&worker.into(), key, Some(from), self.at(from));
            if let Some(until) = until {
                self.log.end(place, self.at(until));
            }
        }

        fn leased(&self, worker: &str, from: u64, until: u64) {
            let worker = worker.into();
            self.log.renew(&worker, self.at(from), self.at(until));
        }

        fn overlaps(&self) -> Vec<u64> {
            let overlaps = self.log.overlaps();
            let from = overlaps.iter().map(|o| (o.from - self.start).as_secs());
            from.collect()
        }
    }

    #[test]
    fn one_after_the_other_is_no_overlap() {
        let story = Story::new();
        story.lives("a", 0, Some(10));
        story.lives("b", 10, Some(20));
        story.lives("a", 20, None);
        assert_eq!(story.overlaps(), [0; 0]);
    }

    #[test]
    fn two_at_once_are_an_overlap() {
        let story = Story::new();
        story.lives("a", 0, None);
        story.lives("b", 10, Some(20));
        story.lives("c", 15, Some(30));
        // b beside a, and c beside both.
        assert_eq!(story.overlaps(), [10, 15, 15]);
    }

    #[test]
    fn ids_are_apart() {
        let story = Story::new();
        story.lives("a", 0, None);
        let key = InstanceKey::new("/counters", "bob");
        story.log.begin(&"b".into(), key, Some(1), story.at(1));
        assert_eq!(story.overlaps(), [0; 0]);
    }

    #[test]
    fn a_worker_past_its_lease_is_not_live() {
        let story = Story::new();
        story.leased("a", 0, 15);
        story.leased("a", 10, 25);
        story.leased("b", 0, 100);
        story.lives("a", 1, None);
        story.lives("b", 25, Some(30));
        assert_eq!(story.overlaps(), [0; 0]);
        // It comes back, and serves on: only once nobody else does.
        story.leased("a", 30, 45);
        assert_eq!(story.overlaps(), [0; 0]);
        story.lives("b", 40, Some(50));
        assert_eq!(story.overlaps(), [40]);
    }

    #[test]
    fn a_lease_that_is_renewed_too_early_shows() {
        let story = Story::new();
        story.leased("a", 0, 15);
        story.leased("b", 0, 100);
        story.lives("a", 1, None);
        story.lives("b", 20, Some(40));
        story.leased("a", 30, 45);
        assert_eq!(story.overlaps(), [30]);
    }
}
