//! What may come of an operation on a tray.

use crate::durability::{FrontierError, NoStateStore, StoreError, TrayKey};
use crate::error::BoxError;

/// Why an operation on a tray was refused. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrayError {
    /// The worker has no state store (T1.7).
    #[error(transparent)]
    NoStateStore(#[from] NoStateStore),
    /// The instance's type declares no such tray.
    #[error("no tray of the name {0:?} is declared on this instance's type")]
    Undeclared(String),
    /// There is no row of this tray (T1.8).
    #[error("there is no tray {0}")]
    NotFound(TrayKey),
    /// The id within a map of trays is empty.
    #[error("the id of a tray in a map is not empty")]
    EmptyId,
    /// The id within a map of trays has more than 1,024 bytes, of which not every store could make a key.
    #[error("the id of a tray in a map has at most 1,024 bytes, and not {0}")]
    LongId(usize),
    /// The tray is being closed, or is closed; open it anew (T14.2).
    #[error("tray {0} is closed; get it from its map again")]
    Closed(TrayKey),
    /// The tray is being deleted, or is deleted (T15.5).
    #[error("tray {0} is deleted")]
    Deleted(TrayKey),
    /// A tray that is always open is closed with its instance alone (T14.1).
    #[error("tray {0} is always open; it closes with its instance")]
    AlwaysOpen(TrayKey),
    /// The instance has closed its trays (T9.11).
    #[error("this instance is closing its trays")]
    Closing,
    /// The tray is not parked (T11.5).
    #[error("tray {0} is not parked")]
    NotParked(TrayKey),
    /// The call came from within a segment of this very tray: use the `&mut` that the segment has.
    #[error("tray {0} is in the middle of a segment of its own on this thread")]
    InSegment(TrayKey),
    /// The stored row is not one of ours (T2.7).
    #[error("entry {entry:?} of tray {tray} is malformed: {reason}")]
    Malformed {
        /// Which tray.
        tray: TrayKey,
        /// Which entry of its row.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value has no JSON form.
    #[error("entry {entry:?} of tray {tray} has no JSON form")]
    Encode {
        /// Which tray.
        tray: TrayKey,
        /// Which entry of its row.
        entry: String,
        /// Why not.
        #[source]
        source: BoxError,
    },
    /// The name of an entry is empty, reserved (`~`), or that of a field (T2.1).
    #[error(
        "{0:?} cannot name an entry: names are not empty, do not begin with `~`, and are not those of fields"
    )]
    Name(String),
    /// The admission refused what it was given; it left nothing behind.
    #[error("the admission was refused")]
    Refused(#[source] BoxError),
    /// A rule of keyed admissions was broken (T12.4, T13).
    #[error("{0}")]
    Keyed(&'static str),
    /// A setup of the tray, or a hook of its opening, failed.
    #[error("tray {tray} could not be set up")]
    Setup {
        /// Which tray.
        tray: TrayKey,
        /// Why not.
        #[source]
        source: BoxError,
    },
    /// Durable effects of this instance can no longer be confirmed.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TrayError {
    /// Whether getting the tray anew and trying again is the way on.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether there is no such tray.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}
