//! Choosing a worker for an id (P4.1).

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Rng;
use tokio::time::Instant;

use crate::store::SessionId;
use crate::workers::{Promise, Worker};

/// What an id is taken to need until the worker's next heartbeat tells, in MiB.
const NEEDS: u64 = 1;

/// No worker counts for more than this many MiB, so that a figure out of the air cannot overflow a sum.
const MOST: u64 = 1 << 40;

/// Which workers a request may go to.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// They may not be chosen.
    pub(super) excluded: Vec<SessionId>,
    /// It is chosen when there is no other.
    pub(super) avoided: Option<SessionId>,
}

impl Rules {
    pub(super) fn exclude(&mut self, session: &SessionId) {
        if !self.excluded.contains(session) {
            self.excluded.push(session.clone());
        }
    }
}

/// Whether `worker` may be given an id now: its grant must outlast the forward.
pub(super) fn is_candidate(
    worker: &Worker,
    rules: &Rules,
    now: Instant,
    forward_needs: Duration,
) -> bool {
    worker.is_open()
        && worker.lease_left(now) > forward_needs
        && !rules.excluded.contains(&worker.id)
}

/// Chooses one of `workers`, and counts the id against its headroom at once, so that whoever chooses at the same time sees
/// it.
///
/// Of two drawn at random, each with a chance in proportion to its headroom, the one that has promised away less of it since
/// its last heartbeat: so one heartbeat's figure draws no herd, and a fleet of unequal workers fills evenly. Workers that have
/// just refused, or have just registered, come after all others.
pub(super) fn choose(
    workers: &[Arc<Worker>],
    rules: &Rules,
    now: Instant,
    forward_needs: Duration,
    rng: &Rng,
) -> Option<Promise> {
    let mut candidates: Vec<&Arc<Worker>> = workers
        .iter()
        .filter(|worker| is_candidate(worker, rules, now, forward_needs))
        .collect();
    prefer(&mut candidates, |worker| {
        rules.avoided.as_ref() != Some(&worker.id)
    });
    prefer(&mut candidates, |worker| {
        !worker.refuses(now) && worker.settles_in(now).is_zero()
    });
    let chosen = match &candidates[..] {
        [] => return None,
        [only] => only,
        _ => draw_two(&candidates, rng),
    };
    Some(chosen.promise())
}

/// Keeps those that fit, unless that is none.
fn prefer(candidates: &mut Vec<&Arc<Worker>>, fits: impl Fn(&Worker) -> bool) {
    if candidates.iter().any(|worker| fits(worker)) {
        candidates.retain(|worker| fits(worker));
    }
}

/// `candidates` has two at least.
fn draw_two<'a>(candidates: &[&'a Arc<Worker>], rng: &Rng) -> &'a Arc<Worker> {
    let mut weights: Vec<u64> = candidates
        .iter()
        .map(|worker| {
            let promised = worker.promised().saturating_mul(NEEDS);
            worker.headroom().min(MOST).saturating_sub(promised)
        })
        .collect();
    if weights.iter().all(|weight| *weight == 0) {
        // Full everywhere, by these figures; the workers know better, and refuse what they cannot take.
        weights.fill(1);
    }
    let total: u64 = weights.iter().sum();
    let draw = || {
        let mut left = rng.below(total);
        let drawn = candidates.iter().zip(&weights).find(|(_, weight)| {
            let here = left < **weight;
            left = left.saturating_sub(**weight);
            here
        });
        // What is drawn lies below the sum of all.
        drawn.map_or(candidates[0], |(worker, _)| *worker)
    };
    let (one, other) = (draw(), draw());
    match promised_share(one, other) {
        Ordering::Greater => other,
        Ordering::Less | Ordering::Equal => one,
    }
}

/// Compares how much of their headroom two have promised away.
fn promised_share(one: &Worker, other: &Worker) -> Ordering {
    let headroom = |worker: &Worker| u128::from(worker.headroom().clamp(1, MOST));
    let crosswise = u128::from(one.promised()) * headroom(other);
    crosswise.cmp(&(u128::from(other.promised()) * headroom(one)))
}
