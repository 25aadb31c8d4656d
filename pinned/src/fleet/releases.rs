//! Handing placements back (W3.11 to W3.14).

use std::sync::Arc;

use parking_lot::Mutex;
use pinned_wire::registry::{RELEASE_PATH, ReleaseItem};
use tokio::sync::oneshot;

use super::calls::{Calls, GivenUp};
use super::session::Session;

/// The queue of placements to hand back. Whatever waits when a send begins goes in that one send.
pub(super) struct Releases {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    /// Somebody sends; it looks again when it is done.
    sending: bool,
}

struct Waiting {
    namespace: Box<str>,
    id: Box<str>,
    epoch: Option<u64>,
    done: oneshot::Sender<Result<(), GivenUp>>,
}

/// What came of queueing a release.
pub(super) enum Queued {
    /// It goes out with the next session; nobody is kept waiting (W3.13).
    UntilRegistered,
    /// It goes out now, and this tells when.
    Sent(oneshot::Receiver<Result<(), GivenUp>>),
}

impl Releases {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
        }
    }

    pub(super) fn queue(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
        session: &Session,
    ) -> Queued {
        let (done, outcome) = oneshot::channel();
        self.state.lock().waiting.push(Waiting {
            namespace: namespace.into(),
            id: id.into(),
            epoch,
            done,
        });
        // Asked after it is queued: a session that comes in between flushes the queue itself.
        match session.id() {
            None => Queued::UntilRegistered,
            Some(_) => Queued::Sent(outcome),
        }
    }

    /// Sends what waits, until nothing does or there is no session. One call at a time does; others return at once.
    pub(super) async fn flush(&self, calls: &Calls, session: &Session) {
        if std::mem::replace(&mut self.state.lock().sending, true) {
            return;
        }
        let sending = Sending(self);
        while let Some((id, batch)) = self.take(session) {
            let items: Vec<ReleaseItem> = batch.iter().map(|item| item.stamped(&id)).collect();
            let outcome = calls
                .with_retries("release", RELEASE_PATH, &items, || {
                    let ids: Vec<&str> = batch.iter().map(|item| &*item.id).collect();
                    format!("the release of {ids:?}")
                })
                .await;
            for item in batch {
                // Whoever queued it may have gone.
                let _ = item.done.send(outcome);
            }
        }
        std::mem::forget(sending);
    }

    /// The next batch; when there is none, the sending ends in the same step.
    fn take(&self, session: &Session) -> Option<(Arc<str>, Vec<Waiting>)> {
        let mut state = self.state.lock();
        match session.id() {
            Some(id) if !state.waiting.is_empty() => Some((id, std::mem::take(&mut state.waiting))),
            _ => {
                state.sending = false;
                None
            }
        }
    }
}

impl Waiting {
    fn stamped(&self, session: &str) -> ReleaseItem {
        ReleaseItem {
            session_id: session.to_owned(),
            namespace: self.namespace.to_string(),
            id: self.id.to_string(),
            epoch: self.epoch.map(|epoch| epoch.to_string()),
        }
    }
}

/// A flush that is dropped halfway leaves the queue to the next one.
struct Sending<'a>(&'a Releases);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.state.lock().sending = false;
    }
}
