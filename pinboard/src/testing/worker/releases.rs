//! Handing placements back (W3.11 to W3.15).

use std::time::Duration;

use pinned_domain::Event;
use pinned_wire::registry::{RELEASE_PATH, Release, ReleaseItem};

use super::InstanceKey;
use super::core::Core;
use super::state::Closing;

/// A placement to hand back.
pub(super) struct Waiting {
    key: InstanceKey,
    epoch: Option<u64>,
    /// Set when the send that took it has ended.
    sent: Event,
}

impl Core {
    /// Ends a close that has begun: hands the placement back, and lets streams and the record go after that.
    pub(super) async fn finish(&self, closing: Closing) {
        let Closing { key, serial, epoch } = closing;
        self.clock.runs().await;
        let sent = Event::new();
        {
            let now = self.clock.now();
            let mut state = self.state.lock();
            if let Some(epoch) = epoch {
                state.fences.release(&key, epoch, now);
            }
            state.releases.push(Waiting {
                key: key.clone(),
                epoch,
                sent: sent.clone(),
            });
            if state.session.is_none() {
                // It goes out after the next registration, and holds nobody up (W3.13).
                sent.set();
            }
        }
        let core = self.this();
        self.domain.spawn(async move { core.flush().await });
        self.domain.wait(&sent, Duration::from_secs(5)).await;
        self.clock.runs().await;
        let mut state = self.state.lock();
        if let Some(record) = state.record(&key, serial) {
            record.closed.set();
            state.records.remove(&key);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Sends what there is to hand back, if there is a session to do it for. One send at a time.
    pub(super) async fn flush(&self) {
        let _one_at_a_time = self.releasing.lock().await;
        let (waiting, body) = {
            let mut state = self.state.lock();
            let Some(session) = state.session.clone() else {
                return;
            };
            let waiting = std::mem::take(&mut state.releases);
            let items = waiting.iter().map(|waiting| ReleaseItem {
                session_id: session.to_string(),
                namespace: waiting.key.ns.to_string(),
                id: waiting.key.id.to_string(),
                epoch: waiting.epoch.map(|epoch| epoch.to_string()),
            });
            let body = Release::Many(items.collect());
            (waiting, body)
        };
        if waiting.is_empty() {
            return;
        }
        for pause in [200, 400, 0].map(Duration::from_millis) {
            let answer = self.call(RELEASE_PATH, &body).await;
            if answer.is_ok_and(|answer| answer.status == http::StatusCode::OK) {
                break;
            }
            if !pause.is_zero() {
                self.domain.sleep(pause).await;
            }
        }
        for waiting in waiting {
            waiting.sent.set();
        }
    }
}
