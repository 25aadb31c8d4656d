//! The state machine of a worker: everything that is behind its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Event;
use pinned_wire::registry::Secret;
use tokio::time::Instant;

use super::fence::Fences;
use super::handler::WorkerInstance;
use super::lease::Lease;
use super::log::{ActivationLog, Place};
use super::options::WorkerOptions;
use super::releases::Waiting;
use super::{InstanceKey, RefusalReason};

/// What is behind the lock.
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) session: Option<Arc<str>>,
    /// The session that was lost and is not replaced yet (W3.4).
    pub(super) previous: Option<Arc<str>>,
    pub(super) challenge: Option<Challenge>,
    pub(super) lease: Lease,
    /// The drains that it is under, each with its deadline if it has one.
    pub(super) own_drain: Option<Option<Instant>>,
    pub(super) server_drain: Option<Option<Instant>>,
    /// Messages that were applied, and not confirmed yet.
    pub(super) acks: BTreeSet<String>,
    /// Placements to hand back.
    pub(super) releases: Vec<Waiting>,
    pub(super) records: BTreeMap<InstanceKey, Record>,
    pub(super) fences: Fences,
    pub(super) activations: BTreeMap<Arc<str>, (u64, u64)>,
    pub(super) reregistrations: u64,
    next_serial: u64,
    idle_timeout: Duration,
    max_instances: usize,
    worker: Arc<str>,
    log: ActivationLog,
}

/// How far a worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// Another worker has displaced it for good.
    Superseded,
    Stopped,
    Crashed,
}

/// What the registry asks, and must be answered.
#[derive(Clone)]
pub(super) struct Challenge {
    pub(super) question: Secret,
    pub(super) answer: Secret,
}

/// An instance.
pub(super) struct Record {
    pub(super) instance: Arc<WorkerInstance>,
    pub(super) serial: u64,
    pub(super) epoch: Option<u64>,
    pub(super) activated_at: Instant,
    pub(super) handlers: usize,
    pub(super) streams: usize,
    pub(super) last_active: Instant,
    /// By when an operator wants it gone.
    pub(super) operator: Option<Instant>,
    pub(super) closing: bool,
    /// Set when its handlers are to stop.
    pub(super) cancel: Event,
    /// Set when its placement has been handed back.
    pub(super) closed: Event,
    place: Place,
}

/// A request that was admitted.
pub(super) struct Admitted {
    pub(super) instance: Arc<WorkerInstance>,
    pub(super) serial: u64,
    pub(super) cancel: Event,
    pub(super) closed: Event,
    /// Whether it activated the instance.
    pub(super) fresh: bool,
}

/// The time, by the worker's clock and by that of the world.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) own: Instant,
    pub(super) world: Instant,
}

/// An instance that has begun to close.
pub(super) struct Closing {
    pub(super) key: InstanceKey,
    pub(super) serial: u64,
    pub(super) epoch: Option<u64>,
}

impl State {
    pub(super) fn new(options: &WorkerOptions) -> Self {
        Self {
            phase: Phase::Serving,
            session: None,
            previous: None,
            challenge: None,
            lease: Lease::new(options.lease_buffer),
            own_drain: None,
            server_drain: None,
            acks: BTreeSet::new(),
            releases: Vec::new(),
            records: BTreeMap::new(),
            fences: Fences::default(),
            activations: BTreeMap::new(),
            reregistrations: 0,
            next_serial: 0,
            idle_timeout: options.idle_timeout,
            max_instances: options.max_instances,
            worker: Arc::clone(&options.name),
            log: options.log.clone(),
        }
    }

    /// Lets a request in, in the order of H3; the handler counts as running from then on.
    pub(super) fn admit(
        &mut self,
        key: &InstanceKey,
        epoch: Option<u64>,
        now: Now,
    ) -> Result<Admitted, RefusalReason> {
        let fresh = !self.records.contains_key(key);
        if self.lease.is_expired(now.own) {
            if fresh {
                self.turn_away(key, epoch, now);
            }
            return Err(RefusalReason::LeaseExpired);
        }
        if let Some(epoch) = epoch {
            let age = self.lease.fence_age();
            self.fences.admit(key, epoch, now.own, age)?;
        }
        if fresh && let Err(refusal) = self.activate(key, epoch, now) {
            self.turn_away(key, epoch, now);
            return Err(refusal);
        }
        let effective = self
            .records
            .get(key)
            .and_then(|record| self.deadline(record));
        let Some(record) = self.records.get_mut(key) else {
            return Err(RefusalReason::Closing);
        };
        if effective.is_some_and(|deadline| deadline <= now.own) {
            return Err(RefusalReason::PastDeadline);
        }
        if record.closing {
            return Err(RefusalReason::Closing);
        }
        if let Some(epoch) = epoch {
            // Adopted in place; the fence has refused what is lower (H3.11).
            record.epoch = Some(epoch);
            record.instance.adopt(epoch);
        }
        record.handlers += 1;
        record.last_active = now.own;
        Ok(Admitted {
            instance: Arc::clone(&record.instance),
            serial: record.serial,
            cancel: record.cancel.clone(),
            closed: record.closed.clone(),
            fresh,
        })
    }

    /// The control plane takes an id elsewhere when it is refused where it does not live (P5.9). What comes under the same epoch
    /// later, when the lease is good again, is late, and must not find a second home here.
    fn turn_away(&mut self, key: &InstanceKey, epoch: Option<u64>, now: Now) {
        if let Some(epoch) = epoch {
            self.fences.release(key, epoch, now.own);
        }
    }

    fn activate(
        &mut self,
        key: &InstanceKey,
        epoch: Option<u64>,
        now: Now,
    ) -> Result<(), RefusalReason> {
        if !self.lease.is_healthy(now.own) {
            return Err(RefusalReason::LeaseUnhealthy);
        }
        if self.is_draining() {
            return Err(RefusalReason::Draining);
        }
        if self.records.len() >= self.max_instances {
            return Err(RefusalReason::Capacity);
        }
        let worker = Arc::clone(&self.worker);
        let place = self.log.begin(&worker, key.clone(), epoch, now.world);
        self.next_serial += 1;
        let record = Record {
            instance: Arc::new(WorkerInstance::new(key.clone(), worker, epoch)),
            serial: self.next_serial,
            epoch,
            activated_at: now.world,
            handlers: 0,
            streams: 0,
            last_active: now.own,
            operator: None,
            closing: false,
            cancel: Event::new(),
            closed: Event::new(),
            place,
        };
        self.records.insert(key.clone(), record);
        let counts = self.activations.entry(Arc::clone(&key.ns)).or_default();
        counts.0 += 1;
        Ok(())
    }

    pub(super) fn is_draining(&self) -> bool {
        self.own_drain.is_some() || self.server_drain.is_some()
    }

    /// The earliest drain deadline: no lease goes beyond it (H10.6).
    pub(super) fn lease_cap(&self) -> Option<Instant> {
        let drains = [self.own_drain, self.server_drain];
        drains.into_iter().flatten().flatten().min()
    }

    /// By when a record must be gone.
    fn deadline(&self, record: &Record) -> Option<Instant> {
        [self.lease_cap(), record.operator]
            .into_iter()
            .flatten()
            .min()
    }

    /// Begins to close what is idle, winding down, or past its deadline.
    pub(super) fn review(&mut self, now: Now) -> Vec<Closing> {
        self.lease.look(now.own);
        let mut due = Vec::new();
        for (key, record) in self.records.iter().filter(|(_, record)| !record.closing) {
            let late = self.deadline(record).is_some_and(|at| at <= now.own);
            let winding_down = record.operator.is_some() || self.is_draining();
            let free = record.handlers == 0;
            let idle = free && record.streams == 0 && self.idle_at(record) <= now.own;
            if late || idle || (winding_down && free) {
                due.push((key.clone(), late));
            }
        }
        let due = due.into_iter();
        due.filter_map(|(key, late)| self.close(&key, late, now))
            .collect()
    }

    /// When [`review`](Self::review) has something to do again, if nothing else happens.
    pub(super) fn next_review(&self) -> Option<Instant> {
        let records = self.records.values().filter(|record| !record.closing);
        let dues = records.flat_map(|record| {
            let free = record.handlers == 0 && record.streams == 0;
            [self.deadline(record), free.then(|| self.idle_at(record))]
        });
        dues.chain([self.lease.next_edge()]).flatten().min()
    }

    fn idle_at(&self, record: &Record) -> Instant {
        pinned_domain::saturating_add(record.last_active, self.idle_timeout)
    }

    /// Begins to close an instance: it does nothing more from now on (H3.10). With `cancel`, its handlers stop where they
    /// are.
    pub(super) fn close(&mut self, key: &InstanceKey, cancel: bool, now: Now) -> Option<Closing> {
        let record = self.records.get_mut(key)?;
        if record.closing {
            return None;
        }
        record.closing = true;
        self.log.end(record.place, now.world);
        if cancel {
            record.cancel.set();
        }
        let counts = self.activations.entry(Arc::clone(&key.ns)).or_default();
        counts.1 += 1;
        Some(Closing {
            key: key.clone(),
            serial: record.serial,
            epoch: record.epoch,
        })
    }

    /// Begins to close everything.
    pub(super) fn close_all(&mut self, now: Now) -> Vec<Closing> {
        let keys: Vec<_> = self.records.keys().cloned().collect();
        let keys = keys.iter();
        keys.filter_map(|key| self.close(key, true, now)).collect()
    }

    /// The process is gone: nothing of it lives, and nothing is handed back.
    pub(super) fn crash(&mut self, now: Now) {
        self.close_all(now);
        self.phase = Phase::Crashed;
    }

    /// The record of one activation.
    pub(super) fn record(&mut self, key: &InstanceKey, serial: u64) -> Option<&mut Record> {
        let record = self.records.get_mut(key)?;
        (record.serial == serial).then_some(record)
    }

    /// All instances, by namespace (W3.5).
    pub(super) fn instances(&self) -> Option<BTreeMap<String, Vec<String>>> {
        let mut instances: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in self.records.keys() {
            let of_ns = instances.entry(key.ns.to_string()).or_default();
            of_ns.push(key.id.to_string());
        }
        (!instances.is_empty()).then_some(instances)
    }
}
