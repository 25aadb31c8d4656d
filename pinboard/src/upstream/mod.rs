//! Connections to workers, and to the few other servers that a node asks something of.
//!
//! A [`Backend`] is one worker's address with its pools of idle HTTP/1.1 connections, one pool for each lane of the server so that a
//! connection stays with the thread that polls it. An exchange is driven by whoever awaits it: there is no task per
//! connection. A [`Fetcher`] asks for something small and whole.

mod backend;
mod error;
mod fetch;
mod head;

pub use backend::{Backend, BackendOptions, Reply, ReplyBody};
pub use error::{ExchangeError, ExchangeErrorKind};
pub use fetch::{Fetch, FetchError, Fetched, Fetcher};
pub use head::{Framing, RequestHead};
