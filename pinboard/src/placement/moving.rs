//! Waiting for a row to move (P5.10).

use std::sync::Arc;
use std::time::Duration;

use super::claim::{Answer, Wanted};
use super::flight::{Landing, Outcome};
use super::service::Inner;
use crate::store::SessionId;

/// How long after a first look the next one comes, unless the store says before that the row has changed.
const SOON: Duration = Duration::from_millis(10);

/// The longest time between two looks.
const LATER: Duration = Duration::from_millis(250);

impl Inner {
    /// Looks at the row until it is no longer held by `session` under `epoch`: then whoever holds it, or takes it now, is the
    /// answer. `None` once nobody waits any longer.
    ///
    /// Each look is a claim, so that a row that has been let go is placed by the look that finds it. The former holder is
    /// chosen only if there is no other: most often it lets go because it drains, and this node has not read of that yet.
    pub(super) async fn await_move(
        self: &Arc<Self>,
        landing: &Landing,
        session: SessionId,
        epoch: u64,
    ) -> Outcome {
        let mut pause = SOON;
        loop {
            // Taken before the look: a change in between ends the wait.
            let moved = self.known.moved(landing.key());
            let mut wanted = Wanted {
                unless: Some((session.clone(), epoch)),
                ..Wanted::new(landing.key())
            };
            wanted.rules.avoided = Some(session.clone());
            if let Answer::Placed(placed) = self.place(wanted).await? {
                return Ok(Some(placed));
            }
            if landing.is_due(self.domain.monotonic()) {
                return Ok(None);
            }
            // Whichever comes first; at the end of the pause the row is looked at in any case.
            let _ = self.domain.timeout(pause, moved).await;
            pause = (pause * 2).min(LATER);
        }
    }
}
