//! Connections to workers, and to the few other servers that a node asks something of.
//!
//! A [`Backend`] is one worker's address with its pools of idle HTTP/1.1 connections, one pool for each lane of the server so that a
//! connection stays with the thread that polls it. An exchange is driven by whoever awaits it: there is no task per
//! connection, and nothing is handed from one task to another. A [`Fetcher`] asks for something small and whole.
//!
//! | from the ground up | what it is |
//! |---|---|
//! | `stream`, `dial`, `tls`, `connector` | making a connection: TCP, TLS over it, or what a simulation hands in |
//! | `connection`, `pool` | a connection with its buffer; the idle ones |
//! | `head`, `request` | sending a head, and a body as it comes |
//! | `response` | understanding heads and bodies, however they are cut |
//! | `exchange`, `reply`, `upgraded` | one request and its response |
//! | `backend`, `fetcher` | what others use |

mod backend;
mod connection;
mod connector;
mod dial;
mod error;
mod exchange;
mod fetch;
mod fetcher;
mod head;
mod pool;
mod reply;
mod request;
mod resolve;
mod response;
mod stream;
mod tls;
mod upgraded;

pub use backend::{Backend, BackendOptions};
pub use connector::{CONNECT_TIMEOUT, Connector};
pub use dial::{Dial, TcpDial};
pub use error::{ExchangeError, ExchangeErrorKind};
pub use fetch::{Fetch, FetchError, Fetched, Fetcher};
pub use fetcher::HttpFetcher;
pub use head::{Framing, RequestHead};
pub use pool::IDLE_TIMEOUT;
pub use reply::{Reply, ReplyBody};
pub use resolve::{Resolve, SystemResolver};
pub use stream::{Io, Stream};
pub use upgraded::Upgraded;
