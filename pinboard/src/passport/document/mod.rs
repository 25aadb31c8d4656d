//! Reading `PINBOARD_PASSPORT` (P7.1).
//!
//! The document is walked by hand rather than derived, because it holds secrets: what a derived reader says about a value of the wrong
//! type shows the value. Here a message names the place and what belongs there, and nothing of what stood there.

mod error;
mod member;
mod namespaces;
mod passport;
mod providers;
mod strict;

pub(super) use error::Malformed;
pub use error::PassportError;
pub(super) use member::{Fields, Member};
pub(super) use passport::read;
pub(super) use strict::from_slice;
