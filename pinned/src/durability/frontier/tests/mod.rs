//! The log of an instance's durable effects, on stores that show what reaches them.

mod enlisting;
mod failing;
mod flushing;
mod lifetime;
mod owner;
mod receipts;
mod store;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use super::{Frontier, FrontierError, FrontierOwner, Receipt};
use crate::domain::Domain;
use crate::durability::{Doc, InstanceKey, RowState, TrayKey};
use owner::Owner;
use store::RecordingStore;

/// Longer than anything takes, on a clock that stands still while anything is runnable.
const NEVER: Duration = Duration::from_secs(3600);

/// A frontier with its owner and its store.
struct Scene {
    frontier: Frontier,
    owner: Arc<Owner>,
    store: RecordingStore,
}

impl Scene {
    fn with_batches() -> Self {
        Self::on(RecordingStore::with_batches(), 1)
    }

    fn with_single_writes() -> Self {
        Self::on(RecordingStore::with_single_writes(), 1)
    }

    /// An activation at `epoch`.
    fn on(store: RecordingStore, epoch: u64) -> Self {
        let frontier = Frontier::new(Arc::new(store.clone()), instance(), epoch);
        let owner = Owner::new();
        let weak = Arc::downgrade(&owner);
        frontier.attach(weak);
        Self {
            frontier,
            owner,
            store,
        }
    }

    /// Enlists `row = n`, at rest.
    fn set(&self, row: &str, n: u64) -> u64 {
        self.write(row, Some(state(false, n)))
    }

    fn delete(&self, row: &str) -> u64 {
        self.write(row, None)
    }

    fn write(&self, row: &str, state: Option<RowState>) -> u64 {
        self.try_write(row, state).expect("the log is open")
    }

    fn try_write(&self, row: &str, state: Option<RowState>) -> Result<u64, FrontierError> {
        self.frontier.segment(|segment| {
            segment.stage(key(row), state);
            self.frontier.position()
        })
    }

    /// Whether a wait is over, once everything that can run has run.
    async fn is_durable(&self, position: u64) -> bool {
        self.settle().await;
        let wait = self.frontier.wait_for(position);
        futures_util::FutureExt::now_or_never(wait).is_some_and(|outcome| outcome.is_ok())
    }

    /// Lets everything run that can: on a stopped clock nothing is runnable when it moves on.
    async fn settle(&self) {
        Domain::real().sleep(Duration::from_millis(1)).await;
    }
}

fn instance() -> InstanceKey {
    InstanceKey::new("/rooms", "blue")
}

fn key(row: &str) -> TrayKey {
    TrayKey::new(row, "~")
}

fn state(marked: bool, n: u64) -> RowState {
    let doc = format!(r#"{{"n":{n}}}"#);
    RowState {
        marked,
        doc: Doc::parse(doc).expect("an object"),
    }
}
