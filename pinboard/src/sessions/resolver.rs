//! From names of hosts to addresses.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::passport::Resolve;

/// How many names are looked up at once: each takes a thread until the system's resolver answers, and one that does not answer
/// must not take them all.
const LOOKUPS: usize = 64;

/// The operating system's resolver, asked a few dozen names at a time.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl SystemResolver {
    /// A resolver that has been asked nothing yet.
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

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let (host, lookups) = (host.to_owned(), Arc::clone(&self.lookups));
        Box::pin(async move {
            let room = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // The thread keeps the room: it goes on when nobody waits for it any more.
                let _room = room;
                let addresses = (host.as_str(), 0).to_socket_addrs()?;
                Ok(addresses.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
