//! Tells the ring of events what has happened, without making anyone wait (P3.3).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::{Domain, ErrorChain};
use tokio::sync::Notify;

use crate::store::{Event, RegistryStore, StoreError};

/// How many events wait at most. The ring keeps no more, so that what is dropped would not stay there either.
pub const WAITING: usize = 1_000;

/// How many go to the store at once, and are not waited for any longer.
const BATCH: usize = 256;

/// How long an event waits for others to go with it.
const LINGER: Duration = Duration::from_millis(100);

/// How long the store is left alone after it did not take a batch.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes events, and hands them to the store in batches. Cheap to clone; clones share what waits.
///
/// Events are for people: they never hold up or fail what they tell of. While the store is away the oldest give way to
/// new ones, and one that the store took without saying so may be there twice.
#[derive(Clone, Default)]
pub struct Events {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Something waits that did not, or enough for a batch.
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    dropped: u64,
}

impl Events {
    /// Keeps events until someone [runs](Self::run) or [flushes](Self::flush) it, or [takes](Self::take) them: for a test that
    /// looks at what was recorded, just that.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one; it reaches the ring soon, in order with others of this node. The oldest gives way when [`WAITING`] of
    /// them wait already.
    pub fn record(&self, event: Event) {
        let mut waiting = self.shared.waiting.lock();
        waiting.events.push_back(event);
        waiting.bound();
        let waiting = waiting.events.len();
        if waiting == 1 || waiting >= BATCH {
            self.shared.arrived.notify_one();
        }
    }

    /// How many have given way to later ones, since the beginning.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.waiting.lock().dropped
    }

    /// Takes what waits, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        self.shared.waiting.lock().events.drain(..).collect()
    }

    /// Hands over what waits, 100 ms after the first of it came or once there are 256, for as long as it is polled.
    ///
    /// # Cancel safety
    ///
    /// A batch that is under way goes back to what waits: it is not lost, and may be in the ring twice.
    pub async fn run(&self, store: &dyn RegistryStore, domain: &Domain) -> Infallible {
        loop {
            self.until(1).await;
            // Enough for a batch ends the wait early; otherwise what there is goes.
            let _ = domain.timeout(LINGER, self.until(BATCH)).await;
            if let Err(error) = self.flush(store).await {
                tracing::warn!(error = %ErrorChain(&error), "events wait for the registry store");
                domain.sleep(PAUSE).await;
            }
        }
    }

    /// Hands over all that waits, now.
    ///
    /// # Errors
    ///
    /// The store did not take a batch. It and what came after it wait on.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn flush(&self, store: &dyn RegistryStore) -> Result<(), StoreError> {
        while let Some(mut batch) = self.next_batch() {
            store.append_events(batch.events.clone()).await?;
            batch.events.clear();
        }
        Ok(())
    }

    async fn until(&self, count: usize) {
        while self.shared.waiting.lock().events.len() < count {
            self.shared.arrived.notified().await;
        }
    }

    fn next_batch(&self) -> Option<Batch<'_>> {
        let mut waiting = self.shared.waiting.lock();
        let size = waiting.events.len().min(BATCH);
        (size > 0).then(|| Batch {
            shared: &self.shared,
            events: waiting.events.drain(..size).collect(),
        })
    }
}

impl Waiting {
    fn bound(&mut self) {
        let excess = self.events.len().saturating_sub(WAITING);
        self.events.drain(..excess);
        self.dropped += excess as u64;
    }
}

/// What is on its way to the store; it goes back to the front of what waits unless it has arrived.
struct Batch<'a> {
    shared: &'a Shared,
    events: Vec<Event>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.events.is_empty() {
            return;
        }
        let mut waiting = self.shared.waiting.lock();
        for event in self.events.drain(..).rev() {
            waiting.events.push_front(event);
        }
        waiting.bound();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.shared.waiting.lock();
        f.debug_struct("Events")
            .field("waiting", &waiting.events.len())
            .field("dropped", &waiting.dropped)
            .finish()
    }
}
