//! From names of hosts to addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

/// How many names are looked up at once: each takes a thread until the system's resolver answers, and one that does not answer
/// must not take them all.
const LOOKUPS: usize = 64;

/// Finds out what addresses a host has.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of `host`, with `port`. Whoever asks decides how long to wait.
    ///
    /// # Errors
    ///
    /// There are none, or nobody knows.
    fn resolve(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// Asks the operating system.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl SystemResolver {
    /// A resolver with room for a few dozen lookups at once.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let (host, lookups) = (host.to_owned(), Arc::clone(&self.lookups));
        Box::pin(async move {
            let room = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // The thread keeps the room: it goes on when nobody waits for it any more.
                let _room = room;
                Ok((host.as_str(), port).to_socket_addrs()?.collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
