//! What this node says of registrations that it refuses.
//!
//! A worker tries again and again, every few seconds, and there may be many of them: the same of the same is told once a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::Domain;
use tokio::time::Instant;

/// How long the same is not told again.
const AGAIN: Duration = Duration::from_secs(60);

/// How many are remembered, and so how many lines a minute there are at most.
const MOST: usize = 256;

/// Who was refused.
pub(super) struct Who<'a> {
    pub(super) client_id: &'a str,
    pub(super) advertise_url: &'a str,
    /// The name of the key, or of the account.
    pub(super) key: &'a str,
    /// Where the call came from, where that is known: the worker, or what stands in front of this node.
    pub(super) peer: Option<IpAddr>,
}

/// The registrations that this node has refused of late.
#[derive(Default)]
pub(in crate::sessions) struct Refused {
    /// Whoever has no key has no part in what is remembered of those who have one.
    strangers: Mutex<Told>,
    known: Mutex<Told>,
}

impl Refused {
    /// Its token is not known, or is not a worker's.
    pub(super) fn stranger(&self, domain: &Domain, peer: Option<IpAddr>, why: &'static str) {
        let who = peer.map(|peer| peer.to_string()).unwrap_or_default();
        let told = self.strangers.lock().take(&who, why, domain.monotonic());
        if let Some(repeated) = told {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(peer, why, repeated, "a worker may not register");
        }
    }

    /// What it sent cannot be read.
    pub(super) fn malformed(&self, domain: &Domain, key: &str, peer: Option<IpAddr>, why: &str) {
        let told = self.known.lock().take(key, why, domain.monotonic());
        if let Some(repeated) = told {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(key, peer, why, repeated, "a registration is malformed");
        }
    }

    /// Its key does not cover what it asks for.
    pub(super) fn not_covered(&self, domain: &Domain, who: &Who<'_>, why: &str) {
        self.tell(domain, who, "a worker may not register", why);
    }

    /// The URL that it advertises answers, and not for it.
    pub(super) fn elsewhere(&self, domain: &Domain, who: &Who<'_>, why: &str) {
        let what = "a worker may not register: its advertised URL does not prove to be its own";
        self.tell(domain, who, what, why);
    }

    /// The URL that it advertises does not answer.
    pub(super) fn unreachable(&self, domain: &Domain, who: &Who<'_>, why: &str) {
        let what = "a worker cannot register: its advertised URL does not answer";
        self.tell(domain, who, what, why);
    }

    fn tell(&self, domain: &Domain, who: &Who<'_>, what: &'static str, why: &str) {
        let told = self
            .known
            .lock()
            .take(who.client_id, why, domain.monotonic());
        if let Some(repeated) = told {
            tracing::warn!(
                client_id = who.client_id,
                advertise_url = who.advertise_url,
                key = who.key,
                peer = who.peer.map(tracing::field::display),
                why,
                repeated,
                "{what}"
            );
        }
    }
}

/// What was told, of whom, and when.
#[derive(Default)]
struct Told {
    lines: HashMap<(String, String), Line>,
}

struct Line {
    at: Instant,
    /// How often it would have been told since.
    since: u64,
}

impl Told {
    /// Whether to tell that `who` was refused for `why`, and how often that has happened since it was last told.
    fn take(&mut self, who: &str, why: &str, now: Instant) -> Option<u64> {
        let is_recent = |line: &Line| now.saturating_duration_since(line.at) < AGAIN;
        let key = (who.to_owned(), why.to_owned());
        if let Some(line) = self.lines.get_mut(&key) {
            if is_recent(line) {
                line.since += 1;
                return None;
            }
            line.at = now;
            return Some(std::mem::take(&mut line.since));
        }
        if self.lines.len() >= MOST {
            self.lines.retain(|_, line| is_recent(line));
            if self.lines.len() >= MOST {
                return None;
            }
        }
        self.lines.insert(key, Line { at: now, since: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_once_a_minute_and_how_often_it_was_not() {
        let mut told = Told::default();
        let start = Domain::real().monotonic();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(told.take("c-1", "why", at(0)), Some(0));
        assert_eq!(told.take("c-1", "why", at(1)), None);
        assert_eq!(told.take("c-1", "why", at(59)), None);
        assert_eq!(told.take("c-1", "else", at(2)), Some(0));
        assert_eq!(told.take("c-2", "why", at(2)), Some(0));
        assert_eq!(told.take("c-1", "why", at(60)), Some(2));
        assert_eq!(told.take("c-1", "why", at(61)), None);
        assert_eq!(told.take("c-1", "why", at(500)), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_many_names_is_not_remembered_without_end() {
        let mut told = Told::default();
        let start = Domain::real().monotonic();
        let lines = (0..10 * MOST).filter(|n| told.take(&n.to_string(), "why", start).is_some());
        assert_eq!(lines.count(), MOST);
        assert_eq!(told.lines.len(), MOST);
        // A minute later others have their turn.
        assert_eq!(told.take("c-1", "why", start + AGAIN), Some(0));
        assert_eq!(told.lines.len(), 1);
    }
}
