//! A node that runs.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use pinned_wire::registry::Secret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use super::background::Background;
use super::builder::Assembled;
use super::parts::Parts;
use super::{PinboardBuilder, StartError};
use crate::operators::{NodeState, Readiness};
use crate::server::{Lanes, Server};
use crate::settings::Settings;

/// A node that runs. Dropping it ends it at once; [`shutdown`](Self::shutdown) ends it in good order.
pub struct Pinboard {
    serving: Serving,
}

/// A node that listens, and may not be ready yet: `/healthz` answers, `/readyz` is 503. Dropping it ends it.
#[must_use = "a node is ready once `ready` says so"]
pub struct Serving {
    parts: Parts,
    server: Server,
    address: SocketAddr,
    token: Option<Secret>,
    /// The threads, where the node has its own.
    lanes: Option<Lanes>,
    background: Background,
}

impl Pinboard {
    /// Begins to make one: a dev node in memory, unless something else is said.
    pub fn builder() -> PinboardBuilder {
        PinboardBuilder::new()
    }

    /// Where it listens; `0.0.0.0:0` when it does not.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.serving.address
    }

    /// Serves one connection of a client at `peer` over `stream`, whatever that is, until it ends, by the rules of those that come to
    /// a listener.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn serve_connection<S>(
        &self,
        stream: S,
        peer: SocketAddr,
    ) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let server = self.serving.server.clone();
        async move { server.serve_connection(0, stream, peer).await }
    }

    /// The token of the one key that may do everything; `None` where there is a passport.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.serving.token.as_ref().map(Secret::expose)
    }

    /// What it has been told.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.serving.parts.settings
    }

    /// What it says of its store: kind and place, no secrets.
    #[must_use]
    pub fn store(&self) -> String {
        self.serving.parts.store.describe()
    }

    /// Whether it takes requests; may be asked from elsewhere.
    #[must_use]
    pub fn readiness(&self) -> &Readiness {
        &self.serving.parts.readiness
    }

    /// Ends it in good order (P1.6): `/readyz` turns 503, new connections are answered for a short while, open requests and tunnels get
    /// up to 30 s, and other nodes are handed what they would wait for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the node at once.
    pub async fn shutdown(self) {
        self.serving.shutdown().await;
    }
}

impl Serving {
    pub(super) fn on_listener(
        assembled: Assembled,
        listener: TcpListener,
    ) -> Result<Self, StartError> {
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let serving = Self::new(assembled, address);
        let server = serving.server.clone();
        serving.background.once(async move {
            if let Err(error) = server.serve(0, listener).await {
                tracing::error!(%error, "the listener does not work any more");
            }
        });
        Ok(serving)
    }

    pub(super) fn off_line(assembled: Assembled) -> Self {
        let serving = Self::new(assembled, (Ipv4Addr::UNSPECIFIED, 0).into());
        let server = serving.server.clone();
        serving
            .background
            .once(async move { server.watch(0).await });
        serving
    }

    pub(super) fn on_address(
        assembled: Assembled,
        address: SocketAddr,
    ) -> Result<Self, StartError> {
        let mut serving = Self::new(assembled, address);
        let lanes = Lanes::start(&serving.server, address).map_err(StartError::Listen)?;
        serving.address = lanes.address();
        serving.lanes = Some(lanes);
        Ok(serving)
    }

    fn new(assembled: Assembled, address: SocketAddr) -> Self {
        let Assembled { parts, token } = assembled;
        let server = parts.server();
        let background = Background::new(parts.domain.clone());
        Self {
            parts,
            server,
            address,
            token,
            lanes: None,
            background,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it says of its store: kind and place, no secrets.
    #[must_use]
    pub fn store(&self) -> String {
        self.parts.store.describe()
    }

    /// Waits for the registry store, reads the state of the fleet, and takes requests.
    ///
    /// # Errors
    ///
    /// The store cannot be used. The node has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the node.
    pub async fn ready(self) -> Result<Pinboard, StartError> {
        self.parts.begin(&self.background).await?;
        Ok(Pinboard { serving: self })
    }

    async fn shutdown(mut self) {
        self.parts.readiness.enter(NodeState::Stopping);
        self.server.stop().await;
        if let Some(lanes) = self.lanes.take() {
            // They end by themselves now, and a runtime of the program's should not wait for threads.
            let joining = tokio::task::spawn_blocking(move || lanes.join());
            let _ = joining.await;
        }
        self.parts.end().await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.parts.readiness.enter(NodeState::Stopping);
        self.server.stop_now();
        self.parts.connections.forget();
    }
}

impl fmt::Debug for Pinboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serving.fmt(f)
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinboard")
            .field("address", &self.address)
            .field("store", &self.parts.store.describe())
            .field("readiness", &self.parts.readiness)
            .finish_non_exhaustive()
    }
}
