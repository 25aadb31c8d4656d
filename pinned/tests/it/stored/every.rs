//! Trays with every kind of field, and what holds for each row that a store may give them. The fuzz targets use it too.

use std::collections::BTreeMap;

use pinned::__private::reopened;
use pinned::durability::Doc;
use pinned::{Persistent, PersistentOutbox, PersistentQueue, Tray};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    n: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Tray)]
pub(crate) struct Every {
    #[tray(items)]
    queue: PersistentQueue<Job>,
    texts: PersistentQueue<String>,
    any: PersistentQueue<serde_json::Value>,
    count: Persistent<u64>,
    #[tray(initial = 100)]
    credit: Persistent<i32>,
    scores: Persistent<BTreeMap<String, Option<f64>>>,
    sending: PersistentOutbox<Job>,
    #[tray(skip)]
    _cache: Vec<u8>,
}

#[derive(Tray)]
#[tray(version = 2)]
pub(crate) struct Later {
    queue: PersistentQueue<Job>,
}

/// A row is refused, or opened and written again to one that opens to the same. Whether it was opened.
pub(crate) fn opens_to_the_same_again<W: Tray>(stored: &Doc) -> bool {
    let Ok(once) = reopened::<W>(stored.clone()) else {
        return false;
    };
    let again = reopened::<W>(once.clone());
    let again = again.unwrap_or_else(|error| panic!("{} came of it: {error}", once.as_str()));
    assert_eq!(again.as_str(), once.as_str());
    // What was taken comes back, which changes the row; nothing else does.
    let text = stored.as_str();
    if !text.contains("taken") && !text.contains("~v") && W::SETTINGS.version == 0 {
        assert_eq!(once.to_map(), stored.to_map());
    }
    assert_is_whole(&once);
    true
}

/// A doc that was put together is one that is taken back from a store.
pub(crate) fn assert_is_whole(doc: &Doc) {
    assert_eq!(Doc::parse(doc.as_str()).as_ref(), Ok(doc));
}
