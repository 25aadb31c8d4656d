//! Ports for servers.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process};

const LOWEST: u32 = 10_240;
/// How far apart processes of neighbouring ids begin to look.
const STRIDE: u32 = 101;

/// A port of 127.0.0.1 that is free, and that no other call in this process has given.
///
/// It is below those that the system gives to outgoing connections: while a server is down, one of those, even that of
/// a client which tries to reconnect, could take the server's port.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = first_ephemeral().saturating_sub(LOWEST);
    let start = process::id().wrapping_mul(STRIDE);
    for _ in 0..span {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = LOWEST + start.wrapping_add(step) % span;
        if let Some(port) = u16::try_from(port).ok().and_then(bind) {
            return port;
        }
    }
    bind(0).expect("a free port on 127.0.0.1")
}

fn bind(port: u16) -> Option<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some(bound.local_addr().ok()?.port())
}

fn first_ephemeral() -> u32 {
    // Where there is no such file, the range begins at 32768 or above.
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next();
    first.and_then(|first| first.parse().ok()).unwrap_or(32_768)
}
