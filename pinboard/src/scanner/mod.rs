//! Finds durable work that nobody lives for, and wakes it (P8).
//!
//! Workers keep a row for each tray in `pinned_tray_index`, *marked* while there is work in it. One node at a time, by a lease in the
//! registry store, reads the marked rows by pages: an id that no live worker holds is placed, and `POST /<ns>/<id>/_wake` is sent to its
//! holder until that answers 200.
//!
//! An id with a live holder is left alone, as a rule: it was activated by whatever placed it. But a worker can hold an id that does not
//! live in it: when an activation failed, when a release got lost, when a node went away between placing and waking. So an id that stays
//! marked under one holder and epoch for a whole lease TTL is woken as well, and so is one that was woken long ago. To an instance that
//! lives a wake is a question that it answers with 200.
//!
//! Wakes are [paced](WAKES_PER_SECOND), [few at once](WAKES_AT_ONCE), and put off for longer and longer while they come to nothing, so that a
//! database full of marked rows, after the registry was wiped, fills the fleet at a rate that it can take. The scanner never writes to
//! the database.
//!
//! Besides, each node learns the highest epoch in the database whenever the fleet starts cold, and gives out none below (P4.3).

mod fleet;
mod floor;
mod ledger;
mod marked;
mod metrics;
mod pace;
mod postgres;
mod run;
mod wake;

pub use fleet::{Attempt, Fleet, FleetAway, Holder};
pub use floor::EpochFloor;
pub use marked::{Cursor, Marked, MarkedError, MarkedPage, MarkedRows};
pub use metrics::{UNOWNED_MARKED_OLDEST, describe};
pub use postgres::PostgresRows;
pub use run::{SCANNER, Scanner};
pub use wake::PlacedFleet;

/// How many wakes are under way at once, at most.
pub const WAKES_AT_ONCE: usize = 64;

/// How many wakes begin in a second, at most, over a longer time.
pub const WAKES_PER_SECOND: u32 = 1_000;
