//! Rows, and what an operation does to them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::claim::TrayKey;

/// The payload of a row: the text of one JSON object.
///
/// Immutable, and cheap to clone: whoever holds one holds a snapshot (D3.7).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Doc(Arc<str>);

/// The text is not that of one JSON object (D6.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row's doc is one JSON object: {0}")]
pub struct NotAnObject(String);

impl Doc {
    /// `{}`.
    pub fn empty() -> Self {
        Self("{}".into())
    }

    /// Checks `text`, which stays as it is.
    ///
    /// # Errors
    ///
    /// [`NotAnObject`] for anything but one JSON object.
    ///
    /// ```
    /// use pinned::durability::Doc;
    ///
    /// assert!(Doc::parse(r#"{"queue":[1,2]}"#).is_ok());
    /// assert!(Doc::parse("[1,2]").is_err());
    /// ```
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, NotAnObject> {
        let text = text.into();
        match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(NotAnObject(error.to_string())),
        }
    }

    /// The text of an object that was put together here, or checked by whoever kept it.
    pub(crate) fn trusted(text: String) -> Self {
        debug_assert!(
            serde_json::from_str::<Map<String, Value>>(&text).is_ok(),
            "{text}"
        );
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The object.
    pub fn to_map(&self) -> Map<String, Value> {
        // Checked when it was made.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for Doc {
    fn from(map: Map<String, Value>) -> Self {
        Self(Value::Object(map).to_string().into())
    }
}

/// The user's data: its size alone is shown, because errors and logs show what holds it.
impl fmt::Debug for Doc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Doc({} bytes)", self.0.len())
    }
}

/// What a row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    /// Work is in flight: open this tray on the next activation (D1.3).
    pub marked: bool,
    /// The payload.
    pub doc: Doc,
}

/// A row with its key, as listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which row of the instance.
    pub key: TrayKey,
    /// What it holds.
    pub state: RowState,
}

/// One write to one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOp {
    /// Which row of the instance.
    pub key: TrayKey,
    /// What becomes of it: `None` deletes it, and an absent row stays absent.
    pub state: Option<RowState>,
}

impl RowOp {
    /// Writes the whole row, mark and payload together (D3.1).
    pub fn set(key: TrayKey, marked: bool, doc: Doc) -> Self {
        Self {
            key,
            state: Some(RowState { marked, doc }),
        }
    }

    /// Removes the row (D3.2).
    pub fn delete(key: TrayKey) -> Self {
        Self { key, state: None }
    }
}

/// Which rows of an instance a listing shows; what is not said does not matter (D5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Only those of this tray.
    pub tray_ns: Option<Arc<str>>,
    /// Only those with this mark.
    pub marked: Option<bool>,
}

impl RowFilter {
    /// Every row.
    pub fn all() -> Self {
        Self::default()
    }

    /// The marked rows.
    pub fn marked() -> Self {
        Self {
            marked: Some(true),
            ..Self::default()
        }
    }

    /// The rows of one tray.
    pub fn tray(tray_ns: impl Into<Arc<str>>) -> Self {
        Self {
            tray_ns: Some(tray_ns.into()),
            ..Self::default()
        }
    }

    /// Whether a row is shown.
    pub fn admits(&self, key: &TrayKey, marked: bool) -> bool {
        self.tray_ns.as_ref().is_none_or(|ns| *ns == key.tray_ns)
            && self.marked.is_none_or(|wanted| wanted == marked)
    }
}
