//! Removing what the dead have left.

use super::state::{Now, State};

/// How many rows one sweep removes at most.
const ROWS: usize = 1_000;

/// For how many lease TTLs a session that has died is remembered.
const REMEMBERED_TTLS: u32 = 4;

impl State {
    /// Removes some rows of dead sessions, and forgets what need not be remembered; whether there may be more rows.
    pub(super) fn sweep(&mut self, now: Now) -> bool {
        self.kept.clients.purge(now.at);
        if self.quarantine(now).is_some() {
            // The workers of those rows may be alive, and about to reclaim them.
            return false;
        }
        let mut left = ROWS;
        while let Some(dead) = self.kept.sessions.first_dead_holder().cloned() {
            while let Some(key) = self.kept.sessions.get(&dead).and_then(|s| s.any_held()) {
                if left == 0 {
                    return true;
                }
                left -= 1;
                self.take(&key, None);
            }
        }
        let kept = self.options.lease_ttl.saturating_mul(REMEMBERED_TTLS);
        if let Some(then) = now.at.checked_sub(kept) {
            self.kept.sessions.forget(then);
        }
        false
    }
}
