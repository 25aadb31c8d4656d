//! How soon the ids of a worker that was killed answer again, at another worker.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{
    process::Command,
    time::{Duration, Instant},
};

use bench::{
    Result,
    load::Connection,
    options::Options,
    proxied::{Node, NodeOptions, Process, TOKEN, free_port, workspace_binary},
};
use tokio::task::JoinSet;

/// What a failover may take beyond the lease.
const GRACE: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let ids: usize = options.take("--ids", 1_000)?;
    // Above the 5 s by which a worker of the default settings turns unhealthy before its lease ends.
    let lease_ttl = options.take_seconds("--lease", 8.0)?;
    options.finish()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let node = Node::start(&NodeOptions {
            store: "memory:",
            lease_ttl,
            ..NodeOptions::default()
        })?;
        let stays = worker(&node)?;
        let all_at = count(&node, ids).await?;
        // Those of the second worker are the ones that are placed while the first takes none.
        let dies = worker(&node)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let more = (ids..3 * ids).map(name).collect::<Vec<_>>();
        for id in &more {
            answer(&node, id).await?;
        }
        let killed = Instant::now();
        drop(dies);
        let mut waits = JoinSet::new();
        for id in more {
            let addr = node.addr();
            waits.spawn(async move {
                loop {
                    if ask(addr, &id).await == Some(200) {
                        return killed.elapsed();
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        let mut waits: Vec<Duration> = waits.join_all().await;
        waits.sort_unstable();
        // The rest never left the worker that stays.
        waits.retain(|waited| *waited > Duration::from_millis(200));
        let rank = (waits.len() * 99).div_ceil(100).saturating_sub(1);
        let p99 = waits.get(rank).copied().ok_or("no id was on the worker that died")?;
        println!(
            "{} of {all_at} + {} ids moved: first {:.2} s, p99 {:.2} s, last {:.2} s after the kill (lease {:.1} s)",
            waits.len(),
            2 * ids,
            waits[0].as_secs_f64(),
            p99.as_secs_f64(),
            waits[waits.len() - 1].as_secs_f64(),
            lease_ttl.as_secs_f64(),
        );
        println!("ratio: {:.3}", p99.as_secs_f64() / (lease_ttl + GRACE).as_secs_f64());
        drop(stays);
        Ok(())
    })
}

fn name(index: usize) -> String {
    format!("user-{index}")
}

/// The example `counter`, behind `node`, ready.
fn worker(node: &Node) -> Result<Process> {
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}");
    let process = Process::start(
        Command::new(workspace_binary("counter")?)
            .env("PORT", port.to_string())
            .env("BIND", "127.0.0.1")
            .env("PINBOARD_URL", node.url(""))
            .env("PINBOARD_TOKEN", TOKEN)
            .env("ADVERTISE_URL", &url)
            .env_remove("ENVIRONMENT"),
    )?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while ureq::get(format!("{url}/readyz")).call().is_err() {
        if Instant::now() > deadline {
            return Err("a worker does not become ready".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(process)
}

async fn count(node: &Node, ids: usize) -> Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while ask(node.addr(), "probe").await != Some(200) {
        if Instant::now() > deadline {
            return Err("no id can be placed".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for index in 0..ids {
        answer(node, &name(index)).await?;
    }
    Ok(ids)
}

async fn answer(node: &Node, id: &str) -> Result<()> {
    match ask(node.addr(), id).await {
        Some(200) => Ok(()),
        other => Err(format!("{id}: {other:?}").into()),
    }
}

async fn ask(addr: std::net::SocketAddr, id: &str) -> Option<u16> {
    let mut connection = Connection::open(addr).await.ok()?;
    let request = bench::load::post(addr, &format!("/counters/{id}/increment"));
    connection.exchange(&request).await.ok()
}
