//! What keeps an instance busy.

use std::fmt;
use std::sync::Arc;

use pinned_domain::Event;

use super::InstanceKey;
use super::core::Core;

/// Something that an instance is busy with, until it is dropped.
pub(super) struct Work {
    core: Arc<Core>,
    key: InstanceKey,
    serial: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Handler,
    Stream,
}

/// A connection that an instance has open beyond its handler, such as a WebSocket: the instance is not idle until this is
/// dropped.
pub struct OpenStream {
    _work: Work,
    closed: Event,
}

impl Work {
    /// The handler of a request that was admitted; it counts already.
    pub(super) fn handler(core: &Arc<Core>, key: &InstanceKey, serial: u64) -> Self {
        Self::new(core, key, serial, Kind::Handler)
    }

    /// A stream that is open from now on.
    pub(super) fn stream(core: &Arc<Core>, key: &InstanceKey, serial: u64) -> Self {
        let work = Self::new(core, key, serial, Kind::Stream);
        if let Some(record) = core.state.lock().record(key, serial) {
            record.streams += 1;
        }
        work
    }

    fn new(core: &Arc<Core>, key: &InstanceKey, serial: u64, kind: Kind) -> Self {
        Self {
            core: Arc::clone(core),
            key: key.clone(),
            serial,
            kind,
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let now = self.core.clock.now();
        if let Some(record) = self.core.state.lock().record(&self.key, self.serial) {
            match self.kind {
                Kind::Handler => record.handlers = record.handlers.saturating_sub(1),
                Kind::Stream => record.streams = record.streams.saturating_sub(1),
            }
            record.last_active = now;
        }
        self.core.changed.notify_waiters();
    }
}

impl OpenStream {
    pub(super) fn new(core: &Arc<Core>, key: &InstanceKey, serial: u64, closed: Event) -> Self {
        let work = Work::stream(core, key, serial);
        Self {
            _work: work,
            closed,
        }
    }

    /// Ends once the instance has let go of its placement: now the stream has to end (H11.8).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn closed(&self) {
        self.closed.wait().await;
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStream")
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
