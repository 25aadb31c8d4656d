//! How late server-sent events come through a pinboard: 1,000 streams of ten events a second.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{net::SocketAddr, time::Duration};

use bench::{
    Result,
    options::Options,
    proxied::{Backend, Nginx, Node, NodeOptions, serve_if_started_as_backend, unix_micros},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// What the issue allows at p99, in microseconds.
const ALLOWED: f64 = 50_000.0;

fn main() -> Result<()> {
    if serve_if_started_as_backend()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let streams: usize = options.take("--streams", 1_000)?;
    let turn = options.take_seconds("--seconds", 10.0)?;
    options.finish()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let node = Node::start(&NodeOptions::default())?;
        let backend = Backend::start(node.addr())?;
        let nginx = Nginx::start(backend.addr())?;
        let direct = lateness(backend.addr(), streams, turn).await?;
        report("backend", &direct);
        let theirs = lateness(nginx.addr(), streams, turn).await?;
        report("nginx", &theirs);
        let ours = lateness(node.addr(), streams, turn).await?;
        report("pinboard", &ours);
        println!("ratio: {:.3}", quantile(&ours, 0.99) as f64 / ALLOWED);
        Ok(())
    })
}

fn report(name: &str, late: &[u64]) {
    println!(
        "{name:<10} {} events   p50 {:>6} us   p99 {:>6} us   max {:>6} us",
        late.len(),
        quantile(late, 0.5),
        quantile(late, 0.99),
        quantile(late, 1.0)
    );
}

fn quantile(sorted: &[u64], quantile: f64) -> u64 {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// The lateness of every event of a turn, in microseconds, ascending.
async fn lateness(addr: SocketAddr, streams: usize, turn: Duration) -> Result<Vec<u64>> {
    let mut tasks = JoinSet::new();
    for index in 0..streams {
        let mut stream = TcpStream::connect(addr).await?;
        let request = format!("GET /counters/user-{index}/events HTTP/1.1\r\nhost: {addr}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        tasks.spawn(async move {
            let mut late = Vec::new();
            let listening = read_events(stream, &mut late);
            // The end of the turn is what ends the stream.
            let _ = tokio::time::timeout(turn, listening).await;
            late
        });
    }
    let mut all = Vec::new();
    while let Some(late) = tasks.join_next().await {
        let late = late?;
        if late.is_empty() {
            return Err("a stream without events".into());
        }
        all.extend(late);
    }
    all.sort_unstable();
    Ok(all)
}

async fn read_events(mut stream: TcpStream, late: &mut Vec<u64>) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        buffer.reserve(4096);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let now = unix_micros();
        let text = String::from_utf8_lossy(&buffer);
        let Some(end) = text.rfind("\n\n") else {
            continue;
        };
        for line in text[..end].lines() {
            if let Some(sent) = line
                .strip_prefix("data: ")
                .and_then(|sent| sent.parse::<u128>().ok())
            {
                late.push(u64::try_from(now.saturating_sub(sent)).unwrap_or(u64::MAX));
            }
        }
        buffer.drain(..end + 2);
    }
}
