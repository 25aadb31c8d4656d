//! The invariants of the trait, held against what the tasks saw.
//!
//! What is known of an operation is that it took effect somewhere between two ticks; two operations of which one had
//! ended before the other began took effect in that order. Each check asks whether what was seen can be so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::log::{Entry, Fact, Row};
use crate::store::{PlacementKey, SessionId};

/// Holds the facts, in the order in which they began, against the invariants.
pub(super) fn check(facts: &[Entry]) {
    let sessions = Sessions::read(facts);
    sessions.check(facts);
    let mut keys: BTreeMap<&PlacementKey, Vec<(&Entry, &Row)>> = BTreeMap::new();
    for entry in facts {
        if let Fact::Of(key, row) = &entry.fact {
            keys.entry(key).or_default().push((entry, row));
        }
    }
    assert!(!keys.is_empty(), "the tasks saw nothing");
    for (key, rows) in keys {
        Id {
            key,
            rows,
            sessions: &sessions,
        }
        .check();
    }
}

/// When sessions began, were retired, and ended.
#[derive(Default)]
struct Sessions<'a> {
    lives: BTreeMap<&'a SessionId, Life>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Which of all sessions it was, by when its register began.
    order: usize,
    /// When the operation began, and when it had ended.
    retired: Option<(u64, u64)>,
    ended: Option<(u64, u64)>,
}

impl<'a> Sessions<'a> {
    fn read(facts: &'a [Entry]) -> Self {
        let mut sessions = Self::default();
        for (order, entry) in facts.iter().enumerate() {
            let when = Some((entry.begun, entry.ended));
            match &entry.fact {
                Fact::Began(session) => {
                    sessions.lives.entry(session).or_default().order = order;
                }
                Fact::Retired(session) => {
                    sessions.lives.entry(session).or_default().retired = when;
                }
                Fact::Ended(session) => sessions.lives.entry(session).or_default().ended = when,
                Fact::Beat(..) | Fact::Of(..) => {}
            }
        }
        sessions
    }

    fn life(&self, session: &SessionId) -> Life {
        match self.lives.get(session) {
            Some(life) => *life,
            None => panic!("P4.2: {session} was never registered"),
        }
    }

    /// Whether it may have been dead at some time before `tick`.
    fn may_be_dead(&self, session: &SessionId, tick: u64) -> bool {
        let ended = self.life(session).ended;
        ended.is_some_and(|(begun, _)| begun < tick)
    }

    fn check(&self, facts: &[Entry]) {
        for entry in facts {
            let Fact::Beat(session, taken) = &entry.fact else {
                continue;
            };
            let life = self.life(session);
            let ends = [life.retired, life.ended];
            let mut ends = ends.iter().flatten();
            if *taken {
                let over = ends.find(|(_, ended)| *ended < entry.begun);
                assert!(
                    over.is_none(),
                    "P2.4 (a dead session never lives again): {session} took a heartbeat at {}..{}, and {life:?}",
                    entry.begun,
                    entry.ended,
                );
            } else {
                let over = ends.find(|(begun, _)| *begun < entry.ended);
                assert!(
                    over.is_some(),
                    "P2.4 (a session lives for a lease TTL): {session} took no heartbeat at {}..{}, and {life:?}",
                    entry.begun,
                    entry.ended,
                );
            }
        }
    }
}

/// One id, and all that was seen of it.
struct Id<'a> {
    key: &'a PlacementKey,
    rows: Vec<(&'a Entry, &'a Row)>,
    sessions: &'a Sessions<'a>,
}

/// One epoch of an id.
struct Reign<'a> {
    epoch: u64,
    placed: &'a Entry,
    over: Option<u64>,
    /// Who held it: first the session that it was placed on, then those that it moved to.
    holders: Vec<(&'a SessionId, &'a Entry)>,
    released: Option<&'a Entry>,
}

impl<'a> Id<'a> {
    fn check(&self) {
        let reigns = self.reigns();
        for (n, reign) in reigns.iter().enumerate() {
            self.epochs_rise(&reigns[..n], reign);
            self.holders_were_alive(reign);
            self.one_at_a_time(n.checked_sub(1).map(|n| &reigns[n]), reign);
            self.a_release_came_in_time(&reigns[n + 1..], reign);
        }
        for (entry, row) in &self.rows {
            if let Row::Seen(seen) = row {
                self.what_was_seen_was_there(&reigns, entry, seen.as_ref());
            }
        }
    }

    /// All epochs, in their order.
    fn reigns(&self) -> Vec<Reign<'a>> {
        let mut reigns: BTreeMap<u64, Reign<'a>> = BTreeMap::new();
        for (entry, row) in &self.rows {
            if let Row::Placed {
                holder,
                epoch,
                over,
            } = row
            {
                let reign = Reign {
                    epoch: *epoch,
                    placed: entry,
                    over: *over,
                    holders: vec![(holder, entry)],
                    released: None,
                };
                if reigns.insert(*epoch, reign).is_some() {
                    self.breaks("P4.3", &format!("epoch {epoch} was handed out twice"));
                }
            }
        }
        for (entry, row) in &self.rows {
            let (Row::Moved { epoch, .. } | Row::Released { epoch } | Row::Fenced { epoch }) = row
            else {
                continue;
            };
            let Some(reign) = reigns.get_mut(epoch) else {
                self.breaks("P4.3", &format!("nobody was placed at epoch {epoch}"));
            };
            match row {
                Row::Moved { holder, .. } => reign.holders.push((holder, entry)),
                Row::Fenced { .. } => {}
                _ => {
                    if reign.released.replace(entry).is_some() {
                        self.breaks("P2.8", &format!("epoch {epoch} was released twice"));
                    }
                }
            }
        }
        for reign in reigns.values_mut() {
            let order = |holder: &SessionId| self.sessions.life(holder).order;
            reign.holders.sort_by_key(|(holder, _)| order(holder));
        }
        reigns.into_values().collect()
    }

    fn epochs_rise(&self, earlier: &[Reign<'a>], reign: &Reign<'a>) {
        // `earlier` have lower epochs: none of them may have been placed surely later.
        if let Some(later) = earlier
            .iter()
            .find(|earlier| reign.placed.ended < earlier.placed.begun)
        {
            self.breaks(
                "P4.3 (each new holder has a higher epoch)",
                &format!("epoch {} came after {}", later.epoch, reign.epoch),
            );
        }
    }

    fn holders_were_alive(&self, reign: &Reign<'a>) {
        for (holder, entry) in &reign.holders {
            let ended = self.sessions.life(holder).ended;
            if ended.is_some_and(|(_, ended)| ended < entry.begun) {
                self.breaks(
                    "P4.2 (nothing is placed on a dead session)",
                    &format!("epoch {} went to {holder}", reign.epoch),
                );
            }
        }
    }

    /// The holder before had let go, or had died.
    fn one_at_a_time(&self, before: Option<&Reign<'a>>, reign: &Reign<'a>) {
        let Some(before) = before else {
            if let Some(over) = reign.over {
                self.breaks("P4.2", &format!("nobody held epoch {over}"));
            }
            return;
        };
        let until = reign.placed.ended;
        let released = before.released.is_some_and(|entry| entry.begun < until);
        let dead = self.may_be_over(before, until);
        let free = match reign.over {
            Some(over) => over == before.epoch && dead,
            None => released || dead,
        };
        if !free {
            self.breaks(
                "P4.2 (one holder at a time)",
                &format!("epoch {} followed {}", reign.epoch, before.epoch),
            );
        }
    }

    /// Whether some holder of this epoch may have died by `tick`.
    fn may_be_over(&self, reign: &Reign<'a>, tick: u64) -> bool {
        let mut holders = reign.holders.iter();
        holders.any(|(holder, _)| self.sessions.may_be_dead(holder, tick))
    }

    fn a_release_came_in_time(&self, later: &[Reign<'a>], reign: &Reign<'a>) {
        let Some(released) = reign.released else {
            return;
        };
        if let Some(later) = later
            .iter()
            .find(|later| later.placed.ended < released.begun)
        {
            self.breaks(
                "P2.8 (only the holder lets go)",
                &format!(
                    "epoch {} was released after {} had been placed",
                    reign.epoch, later.epoch
                ),
            );
        }
    }

    fn what_was_seen_was_there(
        &self,
        reigns: &[Reign<'a>],
        entry: &Entry,
        seen: Option<&(SessionId, u64)>,
    ) {
        // The latest epoch that was surely there when the look began.
        let latest = reigns
            .iter()
            .rfind(|reign| reign.placed.ended < entry.begun);
        let Some((holder, epoch)) = seen else {
            // That one may have gone, or one that followed it and was placed meanwhile.
            let may_be_gone = |reign: &Reign<'_>| {
                reign.placed.begun < entry.ended
                    && (reign.released.is_some_and(|r| r.begun < entry.ended)
                        || self.may_be_over(reign, entry.ended))
            };
            let mut later = reigns.iter();
            let gone = latest.is_none_or(|latest| {
                later.any(|reign| reign.epoch >= latest.epoch && may_be_gone(reign))
            });
            if !gone {
                self.breaks(
                    "P4.2 (a row is there until it is freed)",
                    &format!("at {}..{} nobody held it", entry.begun, entry.ended),
                );
            }
            return;
        };
        let stale = latest.is_some_and(|latest| latest.epoch > *epoch);
        let reign = reigns.iter().find(|reign| reign.epoch == *epoch);
        let there = reign.is_some_and(|reign| {
            // The last time: it may have reclaimed what it held already.
            let held = reign.holders.iter().rposition(|(h, _)| *h == holder);
            let moved_on = held.is_none_or(|held| {
                let mut later = reign.holders[held + 1..].iter();
                later.any(|(_, moved)| moved.ended < entry.begun)
            });
            let released = reign.released.is_some_and(|r| r.ended < entry.begun);
            reign.placed.begun < entry.ended && !moved_on && !released
        });
        if stale || !there {
            self.breaks(
                "P4.2 (a read is never stale)",
                &format!(
                    "at {}..{} it was seen with {holder} at {epoch}",
                    entry.begun, entry.ended
                ),
            );
        }
    }

    fn breaks(&self, rule: &str, what: &str) -> ! {
        let mut history = String::new();
        for (entry, row) in &self.rows {
            let _ = writeln!(history, "  {}..{} {row:?}", entry.begun, entry.ended);
        }
        let sessions = &self.sessions.lives;
        panic!("{rule}: {}: {what}\n{history}{sessions:#?}", self.key);
    }
}
