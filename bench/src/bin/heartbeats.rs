//! What the heartbeats of many workers cost one pinboard node.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{io, net::SocketAddr, time::Duration};

use bench::{
    Result,
    load::Connection,
    options::Options,
    proc,
    proxied::{Node, NodeOptions, Registrar, TOKEN},
};
use pinned_testing::RedisServer;
use tokio::time::{Instant, sleep_until};

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let workers: u32 = options.take("--workers", 1_000)?;
    let lease = options.take_seconds("--lease", 15.0)?;
    let turn = options.take_seconds("--seconds", 30.0)?;
    let store: String = options.take("--store", "redis".to_owned())?;
    options.finish()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let redis = match &*store {
            "memory" => None,
            _ => Some(RedisServer::start().await),
        };
        let url = redis
            .as_ref()
            .map_or_else(|| "memory:".to_owned(), RedisServer::url);
        let node = Node::start(&NodeOptions {
            store: &url,
            lease_ttl: lease,
            ..NodeOptions::default()
        })?;
        // As workers do: three within a lease.
        let interval = lease / 3;
        let sessions = Registrar::start()
            .await?
            .register(node.addr(), workers)
            .await?;
        let began = Instant::now();
        for (n, session) in sessions.into_iter().enumerate() {
            let first = began + interval.mul_f64(n as f64 / f64::from(workers));
            let addr = node.addr();
            tokio::spawn(async move {
                if let Err(error) = beat(addr, &session, first, interval).await {
                    eprintln!("a worker has ended: {error}");
                }
            });
        }
        // Until every worker has its connection, and has been heard.
        sleep_until(began + interval * 2).await;
        let before = proc::cpu_time(node.pid())?;
        sleep_until(began + interval * 2 + turn).await;
        let spent = proc::cpu_time(node.pid())?.saturating_sub(before);
        let share = spent.as_secs_f64() / turn.as_secs_f64();
        let beats = f64::from(workers) * turn.as_secs_f64() / interval.as_secs_f64();
        println!(
            "{workers} workers, one heartbeat each {interval:?}: {:.1} % of a core, {:.0} us each",
            share * 100.0,
            spent.as_secs_f64() * 1e6 / beats,
        );
        println!("ratio: {:.3}", share / 0.1);
        Ok(())
    })
}

/// Sends heartbeats for ever over one connection.
async fn beat(
    addr: SocketAddr,
    session: &str,
    first: Instant,
    interval: Duration,
) -> io::Result<()> {
    let body = format!(r#"{{"sessionId":"{session}","headroom":1024,"draining":false}}"#);
    let request = format!(
        "POST /registry/heartbeat HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    sleep_until(first).await;
    let mut connection = Connection::open(addr).await?;
    let mut next = first;
    loop {
        let status = connection.exchange(request.as_bytes()).await?;
        if status != 200 {
            return Err(io::Error::other(format!(
                "a heartbeat was answered {status}"
            )));
        }
        next += interval;
        sleep_until(next).await;
    }
}
