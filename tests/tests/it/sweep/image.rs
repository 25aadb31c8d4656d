//! The rows of the instance as they stand on the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pinned::durability::{InstanceKey, Row, RowState};
use pinned_testing::sim::SimDisk;
use serde_json::{Map, Value};

/// The instance of the sweep.
pub(super) fn instance() -> InstanceKey {
    InstanceKey::new("/desks", "a")
}

/// A row's name, `(tray_ns, tray_id)`.
pub(super) type Name = (String, String);

pub(super) fn name(namespace: &str, id: &str) -> Name {
    (namespace.to_owned(), id.to_owned())
}

/// Every row, by its name.
#[derive(Clone, Default)]
pub(super) struct Image {
    pub(super) rows: BTreeMap<Name, Arc<RowImage>>,
}

pub(super) struct RowImage {
    pub(super) marked: bool,
    pub(super) doc: Map<String, Value>,
    stored: RowState,
}

/// A queue's entry (T2.4).
#[derive(Debug, Default)]
pub(super) struct QueueImage {
    pub(super) taken: Vec<Value>,
    pub(super) items: Vec<Value>,
}

impl Image {
    /// The disk as it is now; rows that are still as they are in this image are not read again.
    pub(super) fn next(&self, disk: &SimDisk) -> Self {
        let rows = disk.memory().rows(&instance());
        let rows = rows.into_iter().map(|Row { key, state }| {
            let name = name(&key.tray_ns, &key.tray_id);
            let known = self.rows.get(&name).filter(|row| row.stored == state);
            let row = known.cloned().unwrap_or_else(|| Arc::new(state.into()));
            (name, row)
        });
        Self {
            rows: rows.collect(),
        }
    }

    /// Whether not a row has changed since `other`.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.rows.len() == other.rows.len()
            && self.rows.iter().all(|(name, row)| {
                let other = other.rows.get(name);
                other.is_some_and(|other| Arc::ptr_eq(row, other))
            })
    }

    pub(super) fn row(&self, namespace: &str, id: &str) -> Option<&RowImage> {
        self.rows.get(&name(namespace, id)).map(|row| &**row)
    }

    /// The rows in which items are worked on with attempts, state and log.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (&Name, &RowImage)> {
        let is_lane = |name: &Name| matches!(name.0.as_str(), "work" | "kwork");
        let lanes = self.rows.iter().filter(move |(name, _)| is_lane(name));
        lanes.map(|(name, row)| (name, &**row))
    }
}

impl From<RowState> for RowImage {
    fn from(stored: RowState) -> Self {
        Self {
            marked: stored.marked,
            doc: stored.doc.to_map(),
            stored,
        }
    }
}

impl RowImage {
    pub(super) fn queue(&self, entry: &str) -> QueueImage {
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        match self.doc.get(entry) {
            Some(Value::Object(parts)) => QueueImage {
                taken: list(parts.get("taken")).unwrap_or_default(),
                items: list(parts.get("items")).unwrap_or_default(),
            },
            plain => QueueImage {
                taken: Vec::new(),
                items: list(plain).unwrap_or_default(),
            },
        }
    }

    pub(super) fn list(&self, entry: &str) -> &[Value] {
        let list = self.doc.get(entry).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }

    /// An integer; 0 where there is none.
    pub(super) fn number(&self, entry: &str) -> u64 {
        self.doc.get(entry).and_then(Value::as_u64).unwrap_or(0)
    }

    /// The items of the log, in order, with their attempts.
    pub(super) fn log(&self) -> Vec<(u64, u64)> {
        let log = self.list("log").iter();
        log.map(|run| (n_of(run), run["attempts"].as_u64().unwrap_or(0)))
            .collect()
    }
}

impl QueueImage {
    /// Those that are taken, then the others.
    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.taken.iter().chain(&self.items)
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.all().map(n_of).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.items.is_empty()
    }
}

/// The number of an item; one that has none is none that was ever sent.
pub(super) fn n_of(value: &Value) -> u64 {
    value["n"].as_u64().unwrap_or(u64::MAX)
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((namespace, id), row) in &self.rows {
            let mark = if row.marked { "marked" } else { "unmarked" };
            write!(
                f,
                "\n    {namespace}/{id} {mark} {}",
                Value::from(row.doc.clone())
            )?;
        }
        Ok(())
    }
}
