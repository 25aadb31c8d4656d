//! What an idle WebSocket costs a pinboard: resident memory, both legs.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{net::SocketAddr, time::Duration};

use bench::{
    Result,
    options::Options,
    proc,
    proxied::{Backend, Nginx, Node, NodeOptions, serve_if_started_as_backend},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What the issue allows each, in bytes.
const ALLOWED: f64 = 24.0 * 1024.0;

fn main() -> Result<()> {
    if serve_if_started_as_backend()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let sockets: usize = options.take("--sockets", 10_000)?;
    options.finish()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let node = Node::start(&NodeOptions::default())?;
        let backend = Backend::start(node.addr())?;
        let nginx = Nginx::start(backend.addr())?;
        let ours = cost(node.addr(), node.pid(), sockets).await?;
        println!("pinboard: {ours:.0} bytes resident for each of {sockets} idle sockets");
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", nginx.pid()))?;
        let pids: Vec<u32> = children
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let before: u64 = pids
            .iter()
            .map(|pid| proc::resident_bytes(*pid))
            .sum::<Result<_, _>>()?;
        let held = open(nginx.addr(), sockets).await?;
        let after: u64 = pids
            .iter()
            .map(|pid| proc::resident_bytes(*pid))
            .sum::<Result<_, _>>()?;
        let theirs = after.saturating_sub(before) as f64 / held.len() as f64;
        println!("nginx:    {theirs:.0} bytes resident for each of {sockets} idle sockets");
        println!("ratio: {:.3}", ours / ALLOWED);
        Ok(())
    })
}

async fn cost(addr: SocketAddr, pid: u32, sockets: usize) -> Result<f64> {
    // What the first ones need once is not what each of them costs.
    let warm = open(addr, 100).await?;
    let before = proc::resident_bytes(pid)?;
    let held = open(addr, sockets).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = proc::resident_bytes(pid)?;
    drop(warm);
    Ok(after.saturating_sub(before) as f64 / held.len() as f64)
}

async fn open(addr: SocketAddr, sockets: usize) -> Result<Vec<TcpStream>> {
    let mut held = Vec::with_capacity(sockets);
    for index in 0..sockets {
        let mut stream = TcpStream::connect(addr).await?;
        let request = format!(
            "GET /counters/user-{}/ws HTTP/1.1\r\nhost: {addr}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            index % 1_000
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = [0; 1024];
        let read = stream.read(&mut answer).await?;
        if !answer[..read].starts_with(b"HTTP/1.1 101 ") {
            return Err(String::from_utf8_lossy(&answer[..read]).into());
        }
        held.push(stream);
    }
    Ok(held)
}
