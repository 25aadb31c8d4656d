//! Where a field outside any tray writes to: the row of its instance's own fields.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::entries::{EntryText, Image};
use crate::durability::{Frontier, FrontierError, TrayKey};
use crate::error::BoxError;

/// The row of the durable fields that stand on an instance itself, beside the rows of its trays. Both names are
/// reserved, so no tray can be meant.
pub(crate) fn own_row() -> TrayKey {
    TrayKey::new("~", "~")
}

/// The row of an instance's own fields.
pub(crate) struct OwnRow {
    frontier: Frontier,
    image: Mutex<Image>,
}

/// One field's place in that row.
#[derive(Clone)]
pub(crate) struct Link {
    row: Arc<OwnRow>,
    name: &'static str,
}

impl OwnRow {
    pub(crate) fn new(frontier: Frontier, image: Image) -> Arc<Self> {
        Arc::new(Self {
            frontier,
            image: Mutex::new(image),
        })
    }
}

impl Link {
    pub(crate) fn new(row: &Arc<OwnRow>, name: &'static str) -> Self {
        Self {
            row: Arc::clone(row),
            name,
        }
    }

    /// The new text of the entry, or that it is gone. A log that takes nothing any more has ended its instance already.
    ///
    /// # Panics
    ///
    /// Within a segment of another instance: memory would be ahead of what is stored.
    pub(crate) fn write(&self, entry: Option<EntryText>) {
        let written = self.row.frontier.segment(|segment| {
            let mut image = self.row.image.lock();
            image.set(self.name, entry);
            if image.is_changed() {
                image.commit();
                segment.stage(own_row(), Some(image.to_state()));
            }
        });
        assert!(
            !matches!(written, Err(FrontierError::WithinAnother)),
            "the durable field {:?} was changed within a segment of another instance",
            self.name
        );
    }

    /// The value has no JSON form: the instance's memory is ahead of what can ever be stored.
    pub(crate) fn fail(&self, error: BoxError) {
        let error = format!(
            "the durable field {:?} has no JSON form: {error}",
            self.name
        );
        self.row.frontier.fail(error.into());
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name).finish()
    }
}
