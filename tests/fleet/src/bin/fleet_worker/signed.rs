//! A store whose rows say which process wrote them, and under which epoch it claimed to.

use pinned::durability::postgres::{PostgresConfigError, PostgresOptions, PostgresStore};
use pinned::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreFuture, TrayKey,
};
use serde_json::json;

/// Beside the entries of the tray's own fields (T3.5).
const ENTRY: &str = "writer";

pub(crate) struct Signed(PostgresStore);

impl Signed {
    pub(crate) fn open(dsn: &str) -> Result<Self, PostgresConfigError> {
        PostgresStore::from_dsn(dsn, PostgresOptions::new()).map(Self)
    }
}

fn sign(doc: &Doc, claim: &Claim) -> Doc {
    let mut entries = doc.to_map();
    let writer = json!({ "pid": std::process::id(), "epoch": claim.epoch });
    entries.insert(ENTRY.to_owned(), writer);
    Doc::from(entries)
}

impl StateStore for Signed {
    fn setup(&self) -> StoreFuture<()> {
        self.0.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.0.hold_alone()
    }

    fn let_go(&self) {
        self.0.let_go();
    }

    fn batches(&self) -> bool {
        self.0.batches()
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let doc = sign(&doc, &claim);
        self.0.set_tray(claim, key, marked, doc)
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.0.delete_tray(claim, key)
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.0.get_tray(claim, key)
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.0.list(claim, filter)
    }

    fn apply_batch(&self, claim: Claim, mut ops: Vec<RowOp>) -> StoreFuture<()> {
        for state in ops.iter_mut().filter_map(|op| op.state.as_mut()) {
            state.doc = sign(&state.doc, &claim);
        }
        self.0.apply_batch(claim, ops)
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.0.marked_instances(after, limit)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}
