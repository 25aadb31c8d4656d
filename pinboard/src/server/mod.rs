//! Listening, serving and stopping (P1.6, P5.12).
//!
//! A [`Server`] takes connections of clients, finds out whether they speak HTTP/1.1 or HTTP/2, reads the former strictly, and
//! hands requests for instances to the [`Proxy`](crate::proxy::Proxy) and others to a router. The program runs it in
//! [`Lanes`], one thread each; an embedding program calls [`Server::serve`] with a listener of its own, and a simulation
//! [`Server::serve_connection`] with one end of a pipe.

mod body;
mod connection;
mod guard;
mod io;
mod lanes;
mod lifecycle;
mod limit;
mod options;
mod refusal;
mod rt;
mod serve;
mod socket;
mod table;
mod vitals;

pub use lanes::Lanes;
pub use lifecycle::Lifecycle;
pub use options::ServerOptions;
pub use serve::{ConnectionCounts, Server};

/// The strict reading of HTTP/1.1, which is fuzzed.
#[doc(hidden)]
pub mod strict {
    pub use super::guard::{Guard, Refused, Seen};
}
