//! What the checks work with: fresh instances, activations of them, and verdicts.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinned::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreError, StoreFuture,
    TrayKey,
};
use serde_json::{Map, Value, json};

/// The store under test, and where fresh keys come from.
pub(super) struct Scene {
    pub(super) store: Arc<dyn StateStore>,
    run: u64,
    next: AtomicU64,
}

/// One epoch's view of an instance: what an activation may do.
#[derive(Clone)]
pub(super) struct Activation {
    store: Arc<dyn StateStore>,
    pub(super) claim: Claim,
}

/// What an operation came to, held against a rule.
pub(super) trait Verdict<T> {
    /// The value; any error breaks `rule`.
    fn holds(self, rule: &str) -> T;

    /// Anything but `FenceLost` for `claim` breaks `rule`.
    fn fenced(self, rule: &str, claim: &Claim);
}

// ===== impl Scene =====

impl Scene {
    pub(super) fn new(store: Arc<dyn StateStore>) -> Self {
        Self {
            store,
            // A store may outlive this process: no run meets the rows of another.
            run: RandomState::new().hash_one("run"),
            next: AtomicU64::new(0),
        }
    }

    /// A namespace that nothing was ever stored under; those of later calls sort after it.
    pub(super) fn namespace(&self) -> String {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        format!("/check-{:016x}-{next:06}", self.run)
    }

    /// An instance that was never touched.
    pub(super) fn instance(&self) -> InstanceKey {
        InstanceKey::new(self.namespace(), "blue")
    }

    /// An activation of `instance` at `epoch`.
    pub(super) fn at(&self, instance: &InstanceKey, epoch: u64) -> Activation {
        Activation {
            store: Arc::clone(&self.store),
            claim: Claim::new(instance.clone(), epoch),
        }
    }

    /// An activation of a fresh instance at epoch 1.
    pub(super) fn fresh(&self) -> Activation {
        self.at(&self.instance(), 1)
    }
}

// ===== impl Activation =====

impl Activation {
    /// The same instance at another epoch.
    pub(super) fn at(&self, epoch: u64) -> Self {
        Self {
            store: Arc::clone(&self.store),
            claim: Claim::new(self.claim.instance.clone(), epoch),
        }
    }

    /// Whether the store has batches (D3.5).
    pub(super) fn batches(&self) -> bool {
        self.store.batches()
    }

    pub(super) fn set(&self, key: &TrayKey, marked: bool, doc: Value) -> StoreFuture<()> {
        self.set_doc(key, marked, object(doc))
    }

    pub(super) fn set_doc(&self, key: &TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let store = &self.store;
        store.set_tray(self.claim.clone(), key.clone(), marked, doc)
    }

    pub(super) fn delete(&self, key: &TrayKey) -> StoreFuture<()> {
        self.store.delete_tray(self.claim.clone(), key.clone())
    }

    pub(super) fn get(&self, key: &TrayKey) -> StoreFuture<Option<RowState>> {
        self.store.get_tray(self.claim.clone(), key.clone())
    }

    pub(super) fn list(&self, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.store.list(self.claim.clone(), filter)
    }

    pub(super) fn batch(&self, ops: Vec<RowOp>) -> StoreFuture<()> {
        self.store.apply_batch(self.claim.clone(), ops)
    }

    /// Every row, as `(tray_ns, tray_id, marked, doc)`.
    pub(super) async fn rows(&self, rule: &str) -> Vec<(String, String, bool, Value)> {
        let rows = self.list(RowFilter::all()).await.holds(rule);
        rows.iter().map(plain).collect()
    }

    /// Holds the rows of the instance against `expected`.
    pub(super) async fn holds_rows(&self, rule: &str, expected: &[(&str, &str, bool, Value)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(ns, id, marked, doc)| ((*ns).to_owned(), (*id).to_owned(), *marked, doc.clone()))
            .collect();
        same(
            rule,
            "the rows of the instance",
            &self.rows(rule).await,
            &expected,
        );
    }

    /// Holds one row against `expected`.
    pub(super) async fn holds_row(
        &self,
        rule: &str,
        key: &TrayKey,
        expected: Option<(bool, Value)>,
    ) {
        let row = self.get(key).await.holds(rule);
        let row = row.map(|row| (row.marked, Value::Object(row.doc.to_map())));
        same(rule, &format!("row {key}"), &row, &expected);
    }
}

// ===== verdicts =====

impl<T: fmt::Debug> Verdict<T> for Result<T, StoreError> {
    #[track_caller]
    fn holds(self, rule: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("{rule}: the operation has to succeed, and failed: {error:?}"),
        }
    }

    #[track_caller]
    fn fenced(self, rule: &str, claim: &Claim) {
        match self {
            Err(StoreError::FenceLost(lost)) => {
                let expected = (&claim.instance, claim.epoch);
                same(
                    "D2.7",
                    "what FenceLost names",
                    &(&lost.instance, lost.epoch),
                    &expected,
                );
            }
            other => panic!(
                "{rule}: expected FenceLost of {} at epoch {}, and it came to {other:?}",
                claim.instance, claim.epoch
            ),
        }
    }
}

/// Holds `actual` against `expected`.
#[track_caller]
pub(super) fn same<T: PartialEq + fmt::Debug>(rule: &str, what: &str, actual: &T, expected: &T) {
    assert!(
        actual == expected,
        "{rule}: {what}: expected {expected:?}, found {actual:?}"
    );
}

/// Breaks `rule` unless `kept`.
#[track_caller]
pub(super) fn holds(rule: &str, expected: &str, kept: bool) {
    assert!(kept, "{rule}: expected that {expected}");
}

// ===== values =====

/// The doc of a JSON object.
pub(super) fn object(value: Value) -> Doc {
    match value {
        Value::Object(map) => map.into(),
        other => panic!("a check's doc is an object, and not {other}"),
    }
}

/// `{"n": n}`.
pub(super) fn number(n: u64) -> Value {
    json!({ "n": n })
}

/// What [`number`] was made from, of a doc that came back.
pub(super) fn number_of(rule: &str, doc: &Map<String, Value>) -> u64 {
    match doc.get("n").and_then(Value::as_u64) {
        Some(n) => n,
        None => panic!("{rule}: expected a doc of the form {{\"n\": n}}, found {doc:?}"),
    }
}

pub(super) fn key(tray_ns: &str, tray_id: &str) -> TrayKey {
    TrayKey::new(tray_ns, tray_id)
}

pub(super) fn set(key: &TrayKey, marked: bool, doc: Value) -> RowOp {
    RowOp::set(key.clone(), marked, object(doc))
}

pub(super) fn delete(key: &TrayKey) -> RowOp {
    RowOp::delete(key.clone())
}

pub(super) fn plain(row: &Row) -> (String, String, bool, Value) {
    let doc = Value::Object(row.state.doc.to_map());
    let TrayKey { tray_ns, tray_id } = &row.key;
    (
        tray_ns.to_string(),
        tray_id.to_string(),
        row.state.marked,
        doc,
    )
}
