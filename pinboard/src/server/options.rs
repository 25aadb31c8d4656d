//! What a server has been told.

use std::time::Duration;

use super::vitals::Patience;
use crate::settings::Settings;

/// What a server has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerOptions {
    /// How many lanes there are.
    pub lanes: usize,
    /// How many connections are held at most, those that were upgraded included (P5.12).
    pub max_connections: usize,
    /// How long new connections are still answered once the node is about to stop (P1.6).
    pub grace: Duration,
    /// How long open requests and tunnels get after that (P1.6).
    pub drain: Duration,
    /// How long the head of a request may take (P5.12).
    pub head_timeout: Duration,
    /// How long a connection is kept without a request. Longer than the 60 s for which proxies commonly keep theirs, so that it
    /// is they who let go.
    pub idle_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            lanes: 1,
            max_connections: 10_000,
            // What a load balancer takes to look at readiness is up to who runs it; this is for what is on its way already.
            grace: Duration::from_secs(1),
            drain: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

impl ServerOptions {
    pub(super) fn patience(&self) -> Patience {
        Patience {
            head: self.head_timeout,
            idle: self.idle_timeout,
        }
    }
}

impl From<&Settings> for ServerOptions {
    fn from(settings: &Settings) -> Self {
        Self {
            lanes: settings.lanes.max(1),
            max_connections: settings.max_connections,
            ..Self::default()
        }
    }
}
