//! What a connection becomes after a 101: bytes, both ways, until it is over (P5.3).

mod frames;
mod leg;
mod pump;

pub use frames::Frames;

use std::future::Future;
use std::pin::pin;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use metrics::Gauge;
use pinned_domain::Domain;
use tokio::io::{AsyncRead, AsyncWrite};

use super::metrics::Held;
use crate::upstream::Upgraded;
use pump::Pump;

/// A connection that becomes a tunnel once the client has its 101: whoever serves the client runs it.
#[must_use = "a tunnel carries nothing before it is run"]
#[derive(Debug)]
pub struct Tunnel {
    client: OnUpgrade,
    worker: Upgraded,
    is_websocket: bool,
    domain: Domain,
    active: Gauge,
}

impl Tunnel {
    pub(super) fn new(
        client: OnUpgrade,
        worker: Upgraded,
        is_websocket: bool,
        domain: Domain,
        active: Gauge,
    ) -> Self {
        Self {
            client,
            worker,
            is_websocket,
            domain,
            active,
        }
    }

    /// Carries bytes until both sides have ended. When `ending` is ready, it is closed from here: a WebSocket with a close
    /// frame to both sides (1012 to the client) where one may stand.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes both connections at once.
    pub async fn run(self, ending: impl Future<Output = ()>) {
        let _active = Held::new(self.active);
        // The client may have left before it had the 101.
        if let Ok(client) = self.client.await {
            let client = TokioIo::new(client);
            carry(client, self.worker, self.is_websocket, ending, self.domain).await;
        }
    }
}

/// The same over any two connections.
pub(super) async fn carry<C, W>(
    client: C,
    worker: W,
    is_websocket: bool,
    ending: impl Future<Output = ()>,
    domain: Domain,
) where
    C: AsyncRead + AsyncWrite + Unpin,
    W: AsyncRead + AsyncWrite + Unpin,
{
    Pump::new(client, worker, is_websocket, pin!(ending), domain).await;
}
