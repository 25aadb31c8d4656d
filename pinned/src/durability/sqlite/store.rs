//! The handle.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use futures_util::future::ready;
use parking_lot::Mutex;

use super::job::job;
use super::lock::{self, HeldFile};
use super::options::SqliteOptions;
use super::queue::Queue;
use super::schema::Checked;
use super::tables::{Opened, Tables};
use super::{file, writer};
use crate::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreError, StoreFuture,
    TrayKey, prove_fences,
};

/// What SQLite takes as one text (`SQLITE_MAX_LENGTH`), less what the rest of a row may need.
const LONGEST_DOC: usize = 900_000_000;

/// Rows in one SQLite file. A cheap handle; clones are the same store.
///
/// What an operation has confirmed has been flushed to the disk. One thread does all the work, and commits in one
/// transaction whatever came in while it was busy with the one before: many instances that write at once cost hardly
/// more flushes than one.
///
/// A file that is removed or replaced while it is open makes every operation fail from then on: nobody would find what is
/// written to it.
///
/// Several stores, in one process or in several, may have the same file open and are fenced against each other.
/// Beside the file there are its `-wal` and `-shm`, and a `.lock` where a worker without a control plane holds the
/// store for itself.
///
/// Dropping the last handle waits until what is on its way has been done, which blocks for as long as the disk takes.
///
/// ```
/// use pinned::durability::{Claim, Doc, InstanceKey, RowFilter, SqliteStore, StateStore, TrayKey};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pinned.db");
/// let store = SqliteStore::open(&path)?;
/// store.setup().await?;
/// let claim = Claim::new(InstanceKey::new("/rooms", "blue"), 1);
/// store.set_tray(claim.clone(), TrayKey::new("work", "~"), true, Doc::empty()).await?;
///
/// drop(store);
/// let store = SqliteStore::open(&path)?;
/// assert_eq!(store.list(claim, RowFilter::marked()).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore(Arc<Shared>);

struct Shared {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// There is a core for the thread while a caller watches for it on another.
    has_cores: bool,
    held: Mutex<Option<HeldFile>>,
}

impl SqliteStore {
    /// Opens the file at `path`, and makes it when it is missing. [`StateStore::setup`] makes its tables.
    ///
    /// # Errors
    ///
    /// As [`SqliteOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options(path).open()
    }

    /// Says more about a store before it is opened.
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions::new(path.as_ref())
    }

    pub(super) fn with(options: SqliteOptions) -> Result<Self, StoreError> {
        let (connection, place) = file::open(&options)?;
        let path = place.path().to_owned();
        let queue = Arc::new(Queue::default());
        let opened = Opened {
            connection,
            place,
            env: options.env,
            hostname: options.hostname,
        };
        let thread = writer::start(Arc::clone(&queue), opened).map_err(StoreError::failed)?;
        Ok(Self(Arc::new(Shared {
            path,
            queue,
            thread: Some(thread),
            has_cores: thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
            held: Mutex::new(None),
        })))
    }

    /// Where the file is, whatever links led there.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn submit<T: Send + 'static>(
        &self,
        bytes: usize,
        run: impl Fn(&Tables<'_>) -> Checked<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (job, answer) = job(bytes, run);
        let due = self.0.queue.push(job);
        answer.wait(due && self.0.has_cores).boxed()
    }

    /// An operation of `claim`: it acquires, and then runs (D2.1).
    fn acquired<T: Send + 'static>(
        &self,
        claim: Claim,
        bytes: usize,
        run: impl Fn(&Tables<'_>, &InstanceKey) -> Checked<T> + Send + 'static,
    ) -> StoreFuture<T> {
        self.submit(bytes, move |tables| match tables.acquire(&claim)? {
            Ok(()) => run(tables, &claim.instance),
            Err(refused) => Ok(Err(refused)),
        })
    }
}

impl StateStore for SqliteStore {
    fn setup(&self) -> StoreFuture<()> {
        let store = self.clone();
        async move {
            let path = store.0.path.clone();
            store.submit(0, move |tables| tables.create(&path)).await?;
            prove_fences(&store).await
        }
        .boxed()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        let mut held = self.0.held.lock();
        let outcome = match *held {
            Some(_) => Ok(()),
            None => lock::hold(&self.0.path).map(|lock| *held = Some(lock)),
        };
        drop(held);
        ready(outcome).boxed()
    }

    fn let_go(&self) {
        *self.0.held.lock() = None;
    }

    fn batches(&self) -> bool {
        true
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let op = RowOp::set(key, marked, doc);
        let bytes = match bytes(&op) {
            Ok(bytes) => bytes,
            Err(refused) => return ready(Err(refused)).boxed(),
        };
        self.acquired(claim, bytes, move |tables, instance| {
            Ok(Ok(tables.apply(instance, &op)?))
        })
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        let op = RowOp::delete(key);
        self.acquired(claim, 0, move |tables, instance| {
            Ok(Ok(tables.apply(instance, &op)?))
        })
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.acquired(claim, 0, move |tables, instance| tables.get(instance, &key))
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.acquired(claim, 0, move |tables, instance| {
            tables.list(instance, &filter)
        })
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        let bytes = match ops.iter().map(bytes).sum() {
            Ok(bytes) => bytes,
            Err(refused) => return ready(Err(refused)).boxed(),
        };
        self.acquired(claim, bytes, move |tables, instance| {
            for op in &ops {
                tables.apply(instance, op)?;
            }
            Ok(Ok(()))
        })
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.submit(0, move |tables| tables.marked(after.as_ref(), limit))
    }

    fn describe(&self) -> String {
        format!("sqlite, {}", self.0.path.display())
    }
}

/// The size of what `op` writes; refuses what no row can hold, before anything is acquired (D6.1).
fn bytes(op: &RowOp) -> Result<usize, StoreError> {
    let TrayKey { tray_ns, tray_id } = &op.key;
    let doc = op
        .state
        .as_ref()
        .map_or(0, |state| state.doc.as_str().len());
    let bytes = tray_ns.len() + tray_id.len() + doc;
    if bytes > LONGEST_DOC {
        let refused = format!("a row of {bytes} bytes; the longest is {LONGEST_DOC}");
        return Err(StoreError::Invalid(refused));
    }
    Ok(bytes)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        // The file is closed before the lock on it is let go, and whoever opens it next finds all that was confirmed.
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(path = %self.path.display(), "the thread of the state store has panicked");
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}
