//! Hearing from the store what has changed.

use tokio::sync::mpsc;

use super::service::Inner;
use crate::store::Invalidation;

/// How many invalidations are dealt with at once.
const BATCH: usize = 256;

/// The one who listens to the store; hands the receiver back when it ends.
pub(super) struct Listener<'a> {
    inner: &'a Inner,
    receiver: Option<mpsc::Receiver<Invalidation>>,
}

impl<'a> Listener<'a> {
    pub(super) fn new(inner: &'a Inner) -> Option<Self> {
        let receiver = inner.invalidations.lock().take()?;
        Some(Self {
            inner,
            receiver: Some(receiver),
        })
    }

    /// Ends when the store does.
    pub(super) async fn listen(&mut self) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let known = &self.inner.known;
        let _listening = known.listening();
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            for invalidation in batch.drain(..) {
                match invalidation {
                    Invalidation::Row(key) => known.invalidate(&key),
                    Invalidation::Everything => known.doubt_everything(),
                }
            }
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        *self.inner.invalidations.lock() = self.receiver.take();
    }
}
