//! Whom a request comes from.

use std::net::SocketAddr;

/// A client's connection, as far as the proxy is concerned with it.
#[derive(Clone, Debug)]
pub struct Client {
    peer: Box<str>,
    lane: usize,
}

impl Client {
    /// A client at `peer`, whose connection is served by `lane` of the server.
    #[must_use]
    pub fn new(peer: SocketAddr, lane: usize) -> Self {
        Self {
            // Written once, and told to workers with each request.
            peer: peer.ip().to_canonical().to_string().into(),
            lane,
        }
    }

    /// Its address.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// The lane, whose connections to workers are used.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }
}
