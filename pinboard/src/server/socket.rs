//! Sockets of clients, as the system sees them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain as Family, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::TcpStream;

/// How many connections the system may hold that have not been accepted.
const BACKLOG: i32 = 4096;

/// How long a connection is quiet before the system asks whether anybody is there, how often it asks, and how long it
/// takes to believe that nobody is.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// Sets what every connection of a client has. Where the system refuses, it is only slower, or found to be dead later.
pub(super) fn tune(stream: &TcpStream) {
    // Answers are small and whole; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// As many listeners on one address as there are lanes; the system spreads connections over them.
pub(super) fn listen(address: SocketAddr, lanes: usize) -> io::Result<Vec<std::net::TcpListener>> {
    // Sharing an address would take half of another process's clients, too: it has to be free first.
    let first = bind(address, false)?;
    if lanes <= 1 {
        first.listen(BACKLOG)?;
        return Ok(vec![first.into()]);
    }
    let address = first.local_addr()?.as_socket().unwrap_or(address);
    first.listen(1)?;
    drop(first);
    (0..lanes)
        .map(|_| {
            let socket = bind(address, true)?;
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        })
        .collect()
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Family::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restart need not wait for connections of the last run to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
