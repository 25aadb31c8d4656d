//! Writes that outlive their worker, and those that were acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::InstanceKey;

/// Where counters are kept beyond their workers: a list of writes for each instance, fenced by placement epochs. Clones are
/// the same ledger.
///
/// ```
/// use pinboard::testing::{InstanceKey, Ledger};
///
/// let (ledger, key) = (Ledger::new(), InstanceKey::new("/counters", "alice"));
/// assert_eq!(ledger.append(&key, 7, "worker-1"), Ok(1));
/// assert_eq!(ledger.append(&key, 8, "worker-2"), Ok(2));
/// // The former holder has lost it.
/// assert!(ledger.append(&key, 7, "worker-1").is_err());
/// ledger.acknowledge(&key, 2);
/// ledger.assert_nothing_lost();
/// ```
#[derive(Clone, Default)]
pub struct Ledger {
    books: Arc<Mutex<BTreeMap<InstanceKey, Book>>>,
}

#[derive(Default)]
struct Book {
    /// The highest epoch that has read or written.
    epoch: u64,
    writes: Vec<Write>,
    /// The counts that clients were told.
    acknowledged: Vec<u64>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The placement epoch under which it was made.
    pub epoch: u64,
    /// The name of the worker that made it.
    pub worker: Arc<str>,
}

/// A write came from a holder that has lost its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("epoch {epoch} is fenced by {by}")]
pub struct Fenced {
    /// Under which epoch it came.
    pub epoch: u64,
    /// The epoch that is known.
    pub by: u64,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one to the count of `key`; the count. An epoch fences all lower ones from then on.
    ///
    /// # Errors
    ///
    /// [`Fenced`]: a higher epoch is known.
    pub fn append(&self, key: &InstanceKey, epoch: u64, worker: &str) -> Result<u64, Fenced> {
        self.at(key, epoch, |book| {
            let worker = worker.into();
            book.writes.push(Write { epoch, worker });
            book.count()
        })
    }

    /// The count of `key`, as a holder reads it.
    ///
    /// # Errors
    ///
    /// [`Fenced`]: a higher epoch is known.
    pub fn acquire(&self, key: &InstanceKey, epoch: u64) -> Result<u64, Fenced> {
        self.at(key, epoch, |book| book.count())
    }

    fn at<T>(
        &self,
        key: &InstanceKey,
        epoch: u64,
        then: impl FnOnce(&mut Book) -> T,
    ) -> Result<T, Fenced> {
        let mut books = self.books.lock();
        let book = books.entry(key.clone()).or_default();
        if epoch < book.epoch {
            let by = book.epoch;
            return Err(Fenced { epoch, by });
        }
        book.epoch = epoch;
        Ok(then(book))
    }

    /// Notes that a client was told the count `n` in answer to a write.
    pub fn acknowledge(&self, key: &InstanceKey, n: u64) {
        let mut books = self.books.lock();
        books.entry(key.clone()).or_default().acknowledged.push(n);
    }

    /// The count of `key`.
    #[must_use]
    pub fn count(&self, key: &InstanceKey) -> u64 {
        self.books.lock().get(key).map_or(0, Book::count)
    }

    /// All writes of `key`, in order.
    #[must_use]
    pub fn writes(&self, key: &InstanceKey) -> Vec<Write> {
        let books = self.books.lock();
        books
            .get(key)
            .map(|book| book.writes.clone())
            .unwrap_or_default()
    }

    /// Panics when a write that a client was told of is not there, when two clients were told of the same one, or when epochs
    /// went back.
    ///
    /// # Panics
    ///
    /// As said.
    #[track_caller]
    pub fn assert_nothing_lost(&self) {
        for (key, book) in &*self.books.lock() {
            let mut seen = BTreeSet::new();
            for n in &book.acknowledged {
                let there = (1..=book.count()).contains(n);
                assert!(there, "{key}: write {n} was acknowledged and is lost");
                assert!(seen.insert(n), "{key}: write {n} was acknowledged twice");
            }
            let rising = book.writes.is_sorted_by_key(|write| write.epoch);
            assert!(rising, "{key}: epochs went back: {:?}", book.writes);
        }
    }
}

impl Book {
    fn count(&self) -> u64 {
        self.writes.len() as u64
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let books = self.books.lock();
        let counts = books
            .iter()
            .map(|(key, book)| (key.to_string(), book.count()));
        f.debug_map().entries(counts).finish()
    }
}
