//! Making a connection to one address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use super::Stream;

/// How long a connection is silent before the peer is asked whether it is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
/// How long it has to answer before it is asked again.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is asked.
const KEEPALIVE_RETRIES: u32 = 3;
/// How long what was sent may stay unacknowledged: keepalive says nothing about a connection that has bytes on their way.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Makes connections: over TCP in production, pipes in a simulation.
pub trait Dial: Send + Sync + 'static {
    /// Connects to `address`.
    ///
    /// Whoever calls it limits the time, and speaks TLS over the stream where the URL wants it. The future is polled
    /// on the lane that the connection will belong to.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Stream>>;
}

/// Makes TCP connections that send at once, and on which a peer that vanished is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDial;

impl Dial for TcpDial {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        async move {
            let tcp = TcpStream::connect(address).await?;
            tcp.set_nodelay(true)?;
            notice_vanished_peers(&tcp)?;
            Ok(Stream::Tcp(tcp))
        }
        .boxed()
    }
}

fn notice_vanished_peers(tcp: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(tcp);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_RETRIES),
    )?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}
