//! From names to addresses.

use std::io;
use std::net::SocketAddr;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// Finds the addresses behind a name.
///
/// Nothing that dials does so by itself: what was found can be checked first, and is then what is dialled.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses behind `host`, in the order in which they should be tried.
    fn resolve(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let host = host.to_owned();
        async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed()
    }
}
