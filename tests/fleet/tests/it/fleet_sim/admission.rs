//! Work that is marked durably before it is done, and a worker that dies on the way.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Response;
use parking_lot::Mutex;
use pinboard::scanner::{Cursor, Marked, MarkedError, MarkedPage, MarkedRows};
use pinboard::store::PlacementKey;
use pinboard::testing::{Counters, InstanceKey, Ledger, WorkerBody, WorkerCall, WorkerHandler};

use super::fleet::Fleet;

/// How many moments there are at which a worker may die: before the work is marked, before it is written, before the mark goes,
/// and before the answer.
pub(super) const MOMENTS: usize = 4;

/// What is marked, and when somebody is to die.
#[derive(Default)]
pub(super) struct Admission {
    fleet: OnceLock<Weak<Fleet>>,
    marked: Arc<Mutex<BTreeSet<InstanceKey>>>,
    dies_at: Mutex<Option<usize>>,
}

impl Admission {
    pub(super) fn belongs_to(&self, fleet: &Arc<Fleet>) {
        let _ = self.fleet.set(Arc::downgrade(fleet));
    }

    /// Whoever admits something next dies at that moment.
    pub(super) fn arm(&self, moment: usize) {
        *self.dies_at.lock() = Some(moment);
    }

    pub(super) fn is_marked(&self, key: &InstanceKey) -> bool {
        self.marked.lock().contains(key)
    }

    pub(super) async fn admit(
        &self,
        worker: &str,
        counters: Counters,
        call: WorkerCall,
    ) -> Response<WorkerBody> {
        let key = call.instance.key.clone();
        self.moment(0, worker).await;
        self.marked.lock().insert(key.clone());
        self.moment(1, worker).await;
        let response = counters.handle(call).await;
        self.moment(2, worker).await;
        self.marked.lock().remove(&key);
        self.moment(3, worker).await;
        response
    }

    /// Comes back unless it is the moment to die.
    async fn moment(&self, moment: usize, worker: &str) {
        if self.dies_at.lock().take_if(|at| *at == moment).is_none() {
            return;
        }
        if let Some(fleet) = self.fleet.get().and_then(Weak::upgrade)
            && let Some(seat) = fleet.seat_of(worker)
        {
            fleet.crash_worker(seat);
        }
        pending().await
    }

    /// What a scanner sees of it.
    pub(super) fn rows(&self, ledger: &Ledger) -> Rows {
        Rows {
            marked: Arc::clone(&self.marked),
            ledger: ledger.clone(),
        }
    }
}

pub(super) struct Rows {
    marked: Arc<Mutex<BTreeSet<InstanceKey>>>,
    ledger: Ledger,
}

impl Rows {
    fn all(&self) -> Vec<Marked> {
        let marked = self.marked.lock();
        let row = |key: &InstanceKey| Marked {
            key: PlacementKey::single(&*key.ns, &*key.id),
            epoch: self
                .ledger
                .writes(key)
                .last()
                .map_or(0, |write| write.epoch),
        };
        marked.iter().map(row).collect()
    }
}

impl MarkedRows for Rows {
    fn page<'a>(
        &'a self,
        _after: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<MarkedPage, MarkedError>> {
        let ids = self.all();
        async move { Ok(MarkedPage { ids, next: None }) }.boxed()
    }

    fn highest_epoch(&self) -> BoxFuture<'_, Result<u64, MarkedError>> {
        let highest = self.all().iter().map(|row| row.epoch).max();
        async move { Ok(highest.unwrap_or_default()) }.boxed()
    }
}
