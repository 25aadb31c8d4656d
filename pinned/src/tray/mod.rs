//! Trays: durable queues of work inside an instance, and durable fields.
//!
//! | file | what |
//! |---|---|
//! | `definition`, `settings` | what a tray's struct declares |
//! | `field`, `persistent`, `queue`, `outbox` | the durable fields |
//! | `entries`, `reserved`, `key` | the row: its entries, those of the tray itself, keys of admissions |
//! | `core` | a live tray: value and row behind the instance's lock, segments |
//! | `handle`, `dispatch`, `map` | what users hold |
//! | `pump` | working through the items |
//! | `trays`, `kind`, `open`, `retire` | the trays of one instance, their opening and their end |
//! | `owner` | what is asked of the instance |
//! | `mirror` | fields as others may watch them |
//! | `link` | durable fields on the instance itself |

pub(crate) mod core;
mod definition;
mod dispatch;
mod entries;
mod error;
mod field;
mod handle;
mod key;
pub(crate) mod kind;
pub(crate) mod link;
mod map;
mod mirror;
mod open;
mod outbox;
pub(crate) mod owner;
mod persistent;
mod pump;
mod queue;
mod reserved;
mod response;
mod retire;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod trays;

pub use definition::{Tray, TrayLifecycle, TraySource};
pub use dispatch::{Dispatch, DispatchCancelled};
pub(crate) use entries::{Image, entries_of};
pub use error::TrayError;
pub use field::Field;
#[doc(hidden)]
pub use field::{
    Changes, DeclaredField, Hydrated, InitialField, KeyedAdmission, KeyedCount, UnkeptField,
};
pub(crate) use field::{InitialByDefault, Keepable};
pub use handle::{AdmissionReturn, TrayHandle};
pub use map::{MappedTray, SingleTray, TrayMap};
#[doc(hidden)]
pub use open::reopened;
pub use outbox::PersistentOutbox;
pub use persistent::Persistent;
#[doc(hidden)]
pub use queue::{DeclaredQueue, ItemQueue};
pub use queue::{PersistentQueue, QueueError};
pub use reserved::Outcome;
#[doc(hidden)]
pub use settings::TraySettings;
