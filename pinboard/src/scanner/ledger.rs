//! What the scanner knows of the ids that it has seen.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Attempt, Holder, Marked};
use crate::placement::NotPlaced;
use crate::store::PlacementKey;

/// How many ids wait for a wake at once, half of them at most of namespaces that are known to have no workers. Those beyond are counted,
/// and taken in by a later look.
const MAX_WAITING: usize = 65_536;
/// How many held ids are watched at once.
const MAX_WATCHED: usize = 262_144;
/// After how long an id that was awake, and is marked still, is asked again whether it is.
const AWAKE_FOR: Duration = Duration::from_secs(600);

/// What the scanner knows of the ids that it has seen, and which of them it wakes next.
#[derive(Debug)]
pub(super) struct Ledger {
    waiting: HashMap<PlacementKey, Waiting>,
    watched: HashMap<PlacementKey, Watched>,
    /// When which id is to be woken. An entry whose number is not that of the id's any more counts for nothing.
    due: BinaryHeap<Reverse<(Instant, u64, PlacementKey)>>,
    numbers: u64,
    /// Ids of these namespaces are not tried before then: no worker takes them.
    closed: HashMap<(Arc<str>, Arc<str>), Instant>,
    /// Nothing is tried before then: nothing new is placed.
    closed_for_all: Option<Instant>,
    /// How long an id may be marked under one holder before it is asked whether it lives.
    patience: Duration,
    /// The number of the current look.
    look: u64,
    /// The number of the look that has made room.
    made_room: u64,
    unowned_in_look: u64,
}

/// An id that is to be woken.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    above: u64,
    /// The number of its entry in `due`; `None` while a wake is under way.
    number: Option<u64>,
    attempts: u32,
    /// No live worker holds it, as far as the latest look knows.
    unowned: bool,
    /// It had a live holder from the beginning, which is to be asked whether it lives there.
    asked: bool,
    look: u64,
}

/// An id that a live worker holds.
#[derive(Debug)]
struct Watched {
    holder: Holder,
    since: Instant,
    awake_at: Option<Instant>,
    look: u64,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wake this one.
    Wake(Marked),
    /// Nothing before then.
    At(Instant),
    /// Nothing, until something is seen.
    Nothing,
}

/// How far behind the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lag {
    pub(super) unowned: u64,
    pub(super) oldest: Duration,
}

impl Ledger {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            waiting: HashMap::new(),
            watched: HashMap::new(),
            due: BinaryHeap::new(),
            numbers: 0,
            closed: HashMap::new(),
            closed_for_all: None,
            patience,
            look: 0,
            made_room: 0,
            unowned_in_look: 0,
        }
    }

    // --- Looks ---

    pub(super) fn begin_look(&mut self) {
        self.look += 1;
        self.unowned_in_look = 0;
    }

    /// Takes in an id that is marked; whether there is something new to wake.
    pub(super) fn see(&mut self, marked: Marked, holder: Option<Holder>, now: Instant) -> bool {
        match holder {
            None => self.see_unowned(marked, now),
            Some(holder) => self.see_held(marked, holder, now),
        }
    }

    fn see_unowned(&mut self, marked: Marked, now: Instant) -> bool {
        self.unowned_in_look += 1;
        self.watched.remove(&marked.key);
        if let Some(waiting) = self.waiting.get_mut(&marked.key) {
            if !waiting.unowned {
                // Its holder is gone: this is about another placement.
                waiting.unowned = true;
                waiting.since = now;
            }
            waiting.look = self.look;
            waiting.above = waiting.above.max(marked.epoch);
            return false;
        }
        self.wait(marked, true, now)
    }

    fn see_held(&mut self, marked: Marked, holder: Holder, now: Instant) -> bool {
        if let Some(waiting) = self.waiting.get_mut(&marked.key) {
            waiting.look = self.look;
            waiting.unowned = false;
            if waiting.asked || waiting.attempts > 0 {
                // Placed by the scanner, most likely, and not awake yet.
                return false;
            }
            // Somebody else was faster.
            self.waiting.remove(&marked.key);
        }
        let watched = self.watched.get_mut(&marked.key);
        match watched.filter(|watched| watched.holder == holder) {
            Some(watched) => {
                watched.look = self.look;
                let over = match watched.awake_at {
                    Some(at) => at + AWAKE_FOR,
                    None => watched.since + self.patience,
                };
                over <= now && self.wait(marked, false, now)
            }
            None => {
                self.watch(marked.key, holder, None, now);
                false
            }
        }
    }

    /// Forgets what is not marked any more, and tells how far behind the look has found the scanner.
    pub(super) fn end_look(&mut self, now: Instant) -> Lag {
        let look = self.look;
        self.watched.retain(|_, watched| watched.look == look);
        // What is under way comes to its end.
        self.waiting
            .retain(|_, waiting| waiting.look == look || waiting.number.is_none());
        self.closed.retain(|_, until| *until > now);
        self.due.retain(|Reverse((_, number, key))| {
            let waiting = self.waiting.get(key);
            waiting.is_some_and(|waiting| waiting.number == Some(*number))
        });
        let unowned = self.waiting.values().filter(|waiting| waiting.unowned);
        let oldest = unowned.map(|waiting| waiting.since).min();
        Lag {
            unowned: self.unowned_in_look,
            oldest: oldest.map_or(Duration::ZERO, |since| now - since),
        }
    }

    // --- Wakes ---

    /// Which id to wake now. It is under way until it is [settled](Self::settle).
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if let Some(until) = self.closed_for_all {
            if until > now {
                return if self.due.is_empty() {
                    Next::Nothing
                } else {
                    Next::At(until)
                };
            }
            self.closed_for_all = None;
        }
        while let Some(Reverse((at, number, _))) = self.due.peek() {
            if *at > now {
                return Next::At(*at);
            }
            let number = *number;
            let Some(Reverse((_, _, key))) = self.due.pop() else {
                break;
            };
            let Some(waiting) = self.waiting.get_mut(&key) else {
                continue;
            };
            if waiting.number != Some(number) {
                continue;
            }
            let world = (Arc::clone(&key.env), Arc::clone(&key.ns));
            match self
                .closed
                .get(&world)
                .copied()
                .filter(|until| *until > now)
            {
                Some(until) => self.put_off(key, until),
                None => {
                    waiting.number = None;
                    waiting.attempts = waiting.attempts.saturating_add(1);
                    let epoch = waiting.above;
                    return Next::Wake(Marked { key, epoch });
                }
            }
        }
        Next::Nothing
    }

    /// Takes in what came of a wake; `jitter` is from 0 to 1.
    pub(super) fn settle(
        &mut self,
        key: &PlacementKey,
        attempt: Attempt,
        jitter: f64,
        now: Instant,
    ) {
        let Some(waiting) = self.waiting.get(key) else {
            return;
        };
        let attempts = waiting.attempts;
        if let Attempt::Awake(holder) = attempt {
            self.waiting.remove(key);
            self.watch(key.clone(), holder, Some(now), now);
            return;
        }
        let after = delay(&attempt, attempts).mul_f64(1.0 + jitter / 2.0);
        match attempt {
            Attempt::NotPlaced(NotPlaced::NoWorkers | NotPlaced::UnknownNamespace) => {
                let world = (Arc::clone(&key.env), Arc::clone(&key.ns));
                self.closed.insert(world, now + after);
            }
            Attempt::NotPlaced(NotPlaced::Quarantined(_) | NotPlaced::StoreAway) => {
                let until = self.closed_for_all.unwrap_or(now);
                self.closed_for_all = Some(until.max(now + after));
            }
            _ => {}
        }
        self.put_off(key.clone(), now + after);
    }

    // --- The parts ---

    fn wait(&mut self, marked: Marked, unowned: bool, now: Instant) -> bool {
        let Marked { key, epoch } = marked;
        // One that is to be asked whether it lives may be waiting, or under way, already.
        if self.waiting.contains_key(&key) {
            return false;
        }
        let closed = self.is_closed(&key, now);
        let most = if closed { MAX_WAITING / 2 } else { MAX_WAITING };
        if self.waiting.len() >= most && (closed || !self.make_room(now)) {
            return false;
        }
        let waiting = Waiting {
            since: now,
            above: epoch,
            number: None,
            attempts: 0,
            unowned,
            asked: !unowned,
            look: self.look,
        };
        self.waiting.insert(key.clone(), waiting);
        self.put_off(key, now);
        true
    }

    /// Whether no worker takes ids of its namespace at the moment.
    fn is_closed(&self, key: &PlacementKey, now: Instant) -> bool {
        let world = (Arc::clone(&key.env), Arc::clone(&key.ns));
        self.closed.get(&world).is_some_and(|until| *until > now)
    }

    /// Has ids give way that no worker takes, however many of them there are, so that those which one would take get their turn; whether
    /// any did. The one of each namespace that has waited longest stays: it finds out when there are workers again.
    fn make_room(&mut self, now: Instant) -> bool {
        // Once in a look: those that come after are kept to their half.
        if self.made_room == self.look || self.closed.values().all(|until| *until <= now) {
            return false;
        }
        self.made_room = self.look;
        let mut first: HashMap<(Arc<str>, Arc<str>), (Instant, PlacementKey)> = HashMap::new();
        for (key, waiting) in &self.waiting {
            if waiting.number.is_some() && self.is_closed(key, now) {
                let world = (Arc::clone(&key.env), Arc::clone(&key.ns));
                let candidate = (waiting.since, key.clone());
                match first.entry(world) {
                    Entry::Vacant(entry) => drop(entry.insert(candidate)),
                    Entry::Occupied(mut entry) if candidate < *entry.get() => {
                        entry.insert(candidate);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        let before = self.waiting.len();
        self.waiting.retain(|key, waiting| {
            let world = (Arc::clone(&key.env), Arc::clone(&key.ns));
            waiting.number.is_none() || first.get(&world).is_none_or(|(_, first)| first == key)
        });
        self.waiting.len() < before
    }

    fn put_off(&mut self, key: PlacementKey, at: Instant) {
        self.numbers += 1;
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.number = Some(self.numbers);
            self.due.push(Reverse((at, self.numbers, key)));
        }
    }

    fn watch(
        &mut self,
        key: PlacementKey,
        holder: Holder,
        awake_at: Option<Instant>,
        now: Instant,
    ) {
        if self.watched.len() >= MAX_WATCHED && !self.watched.contains_key(&key) {
            return;
        }
        let watched = Watched {
            holder,
            since: now,
            awake_at,
            look: self.look,
        };
        self.watched.insert(key, watched);
    }
}

/// How long to wait after so many attempts, of which the last came to `attempt`.
fn delay(attempt: &Attempt, attempts: u32) -> Duration {
    let (first, longest) = match attempt {
        // Most activations take a moment.
        Attempt::Awake(_) | Attempt::Activating => (50, 2_000),
        Attempt::Refused => (250, 10_000),
        Attempt::Unreachable => (500, 10_000),
        // It was written for other workers than those that there are: somebody has to look.
        Attempt::Failed { .. } => (1_000, 60_000),
        Attempt::NotPlaced(why) => match why {
            NotPlaced::Quarantined(left) => return *left,
            NotPlaced::Fenced(left) => return (*left).min(Duration::from_secs(10)),
            _ => (1_000, 1_000),
        },
    };
    let doubled = 1_u64
        .checked_shl(attempts.saturating_sub(1).min(16))
        .unwrap_or(1);
    Duration::from_millis((first * doubled).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(15);

    fn now() -> Instant {
        pinned_domain::Domain::real().monotonic()
    }

    fn marked(id: &str) -> Marked {
        Marked {
            key: PlacementKey::single("/ns", id),
            epoch: 3,
        }
    }

    fn holder(epoch: u64) -> Holder {
        Holder {
            session: crate::store::SessionId::new("s"),
            epoch,
        }
    }

    // P8.2
    #[test]
    fn an_unowned_id_is_woken_until_it_is_awake() {
        let (mut ledger, mut now) = (Ledger::new(PATIENCE), now());
        ledger.begin_look();
        assert!(ledger.see(marked("a"), None, now));
        assert_eq!(ledger.next(now), Next::Wake(marked("a")));
        assert_eq!(ledger.next(now), Next::Nothing);
        for millis in [50, 100, 200] {
            ledger.settle(&marked("a").key, Attempt::Activating, 0.0, now);
            let at = now + Duration::from_millis(millis);
            assert_eq!(ledger.next(now), Next::At(at));
            now = at;
            assert_eq!(ledger.next(now), Next::Wake(marked("a")));
        }
        // The next look finds it held, by what the scanner itself has placed.
        ledger.begin_look();
        assert!(!ledger.see(marked("a"), Some(holder(4)), now));
        assert_eq!(ledger.end_look(now).unowned, 0);
        ledger.settle(&marked("a").key, Attempt::Awake(holder(4)), 0.0, now);
        assert_eq!(ledger.next(now + PATIENCE), Next::Nothing);
        assert!(!ledger.see(marked("a"), Some(holder(4)), now + PATIENCE));
    }

    #[test]
    fn a_held_id_is_left_alone_until_it_stays_marked_under_one_holder_for_too_long() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        let later = now + PATIENCE;
        for (at, held) in [(now, holder(1)), (later, holder(2)), (later, holder(2))] {
            ledger.begin_look();
            assert!(!ledger.see(marked("a"), Some(held), at));
            assert_eq!(ledger.end_look(at).unowned, 0);
            assert_eq!(ledger.next(at), Next::Nothing);
        }
        ledger.begin_look();
        assert!(ledger.see(marked("a"), Some(holder(2)), later + PATIENCE));
        assert_eq!(ledger.next(later + PATIENCE), Next::Wake(marked("a")));
        // It was awake all the time: nobody asks again before long.
        let at = later + PATIENCE;
        ledger.settle(&marked("a").key, Attempt::Awake(holder(2)), 0.0, at);
        assert!(!ledger.see(marked("a"), Some(holder(2)), at + PATIENCE * 2));
        assert!(ledger.see(marked("a"), Some(holder(2)), at + AWAKE_FOR));
    }

    // P8.3
    #[test]
    fn the_lag_counts_from_the_look_that_first_found_an_id_without_a_holder() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        ledger.begin_look();
        ledger.see(marked("a"), None, now);
        let later = now + Duration::from_secs(5);
        ledger.begin_look();
        ledger.see(marked("a"), None, later);
        ledger.see(marked("b"), None, later);
        ledger.see(marked("c"), Some(holder(1)), later);
        let lag = Lag {
            unowned: 2,
            oldest: Duration::from_secs(5),
        };
        assert_eq!(ledger.end_look(later), lag);
        // Both rows are unmarked.
        ledger.begin_look();
        let lag = ledger.end_look(later);
        assert_eq!((lag.unowned, lag.oldest), (0, Duration::ZERO));
        assert_eq!(ledger.next(later), Next::Nothing);
    }

    #[test]
    fn ids_of_a_namespace_without_workers_are_tried_one_by_one() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        ledger.begin_look();
        for id in ["a", "b", "c"] {
            ledger.see(marked(id), None, now);
        }
        assert_eq!(ledger.next(now), Next::Wake(marked("a")));
        let nobody = Attempt::NotPlaced(NotPlaced::NoWorkers);
        ledger.settle(&marked("a").key, nobody, 0.0, now);
        let again = now + Duration::from_secs(1);
        assert_eq!(ledger.next(now), Next::At(again));
        assert!(matches!(ledger.next(again), Next::Wake(_)));
    }

    #[test]
    fn nothing_is_tried_before_the_quarantine_ends() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        ledger.begin_look();
        ledger.see(marked("a"), None, now);
        ledger.see(marked("b"), None, now);
        assert!(matches!(ledger.next(now), Next::Wake(_)));
        let quarantined = Attempt::NotPlaced(NotPlaced::Quarantined(PATIENCE));
        ledger.settle(&marked("a").key, quarantined, 0.0, now);
        assert_eq!(ledger.next(now), Next::At(now + PATIENCE));
        assert!(matches!(ledger.next(now + PATIENCE), Next::Wake(_)));
    }

    #[test]
    fn what_does_not_fit_is_counted_all_the_same() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        ledger.begin_look();
        let many = MAX_WAITING + 10;
        for id in 0..many {
            ledger.see(marked(&id.to_string()), None, now);
        }
        assert_eq!(ledger.end_look(now).unowned, many as u64);
        assert_eq!(ledger.waiting.len(), MAX_WAITING);
    }
    // P8.2: a namespace that nobody serves any more keeps nobody else's work from being found.
    #[test]
    fn ids_that_no_worker_takes_give_way_to_those_that_one_would() {
        let (mut ledger, now) = (Ledger::new(PATIENCE), now());
        let of = |ns: &str, id: usize| Marked {
            key: PlacementKey::single(ns, id.to_string()),
            epoch: 3,
        };
        let nobody = || Attempt::NotPlaced(NotPlaced::NoWorkers);
        ledger.begin_look();
        for id in 0..MAX_WAITING + 10 {
            ledger.see(of("/left", id), None, now);
        }
        let Next::Wake(first) = ledger.next(now) else {
            panic!("it is due");
        };
        ledger.settle(&first.key, nobody(), 0.0, now);
        assert!(ledger.see(of("/served", 1), None, now));
        assert_eq!(ledger.next(now), Next::Wake(of("/served", 1)));

        // Those that come after take no more than their half; one is tried again in time.
        ledger.begin_look();
        for id in 0..MAX_WAITING {
            ledger.see(of("/left", id), None, now);
        }
        assert!(ledger.waiting.len() <= MAX_WAITING / 2 + 1);
        assert!(ledger.see(of("/served", 2), None, now));
        let later = now + Duration::from_secs(2);
        assert!(matches!(ledger.next(later), Next::Wake(_)));
    }
}
