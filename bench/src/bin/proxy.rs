//! Requests per second through pinboard, beside nginx in front of the same backend.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use bench::{
    Result,
    compare::median,
    options::Options,
    proc,
    proxied::{Backend, Nginx, Node, NodeOptions, Wrk, WrkReport, serve_if_started_as_backend},
};
use std::time::Duration;

fn main() -> Result<()> {
    if serve_if_started_as_backend()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let starts: usize = options.take("--starts", 1)?;
    let rounds: usize = options.take("--rounds", 7)?;
    let turn = options.take_seconds("--seconds", 3.0)?;
    let connections = options.take("--connections", 64)?;
    let ids = options.take("--ids", 1_000)?;
    let store: String = options.take("--store", "memory:".to_owned())?;
    // One lane, as wrk and the backend take the processors too; 0 is pinboard's own default.
    let lanes = options.take("--lanes", 1)?;
    let nginx_workers = options.take("--nginx-workers", 2)?;
    options.finish()?;

    let lanes_shown = if lanes > 0 {
        lanes.to_string()
    } else {
        "as many as processors".to_owned()
    };
    println!("lanes of pinboard: {lanes_shown}; workers of nginx: {nginx_workers}");
    let (mut ours, mut theirs, mut direct) = (Vec::new(), Vec::new(), Vec::new());
    // What is drawn by lot at a start, such as seeds and addresses, stays for as long as the processes run.
    for _ in 0..starts {
        let node = Node::start(&NodeOptions {
            store: &store,
            lanes: (lanes > 0).then_some(lanes),
            ..NodeOptions::default()
        })?;
        let backend = Backend::start(node.addr())?;
        let nginx = Nginx::with_workers(backend.addr(), nginx_workers)?;
        let wrk = Wrk::new(connections, ids)?;
        // Every id is placed, and every connection to the backend stands.
        for addr in [node.addr(), nginx.addr()] {
            wrk.run(addr, turn)?;
        }
        for round in 0..rounds {
            // In an order that reverses each round.
            if round % 2 == 0 {
                ours.push(take("pinboard", &wrk, node.addr(), turn, Some(node.pid()))?);
                theirs.push(take("nginx", &wrk, nginx.addr(), turn, None)?);
            } else {
                theirs.push(take("nginx", &wrk, nginx.addr(), turn, None)?);
                ours.push(take("pinboard", &wrk, node.addr(), turn, Some(node.pid()))?);
            }
            direct.push(take("backend", &wrk, backend.addr(), turn, None)?);
        }
    }

    let pairs = || ours.iter().zip(&theirs).zip(&direct);
    let added =
        |through: Duration, alone: Duration| through.saturating_sub(alone).as_secs_f64().max(1e-6);
    println!();
    let p50 = median(
        pairs()
            .map(|((our, their), alone)| added(our.p50, alone.p50) / added(their.p50, alone.p50)),
    );
    let p99 = median(
        pairs()
            .map(|((our, their), alone)| added(our.p99, alone.p99) / added(their.p99, alone.p99)),
    );
    println!("added p50, pinboard/nginx: {p50:.3}");
    println!("added p99, pinboard/nginx: {p99:.3}");
    let ratio = median(pairs().map(|((our, their), _)| our.rate / their.rate));
    println!("ratio: {ratio:.3}");
    Ok(())
}

fn take(
    name: &str,
    wrk: &Wrk,
    addr: std::net::SocketAddr,
    turn: Duration,
    pid: Option<u32>,
) -> Result<WrkReport> {
    let before = pid.map(proc::cpu_time).transpose()?;
    let report = wrk.run(addr, turn)?;
    let micros = match (pid, before) {
        (Some(pid), Some(before)) => {
            let spent = proc::cpu_time(pid)?.saturating_sub(before);
            let answers = report.rate * turn.as_secs_f64();
            format!(
                "   {:.2} us of cpu each",
                spent.as_secs_f64() * 1e6 / answers
            )
        }
        _ => String::new(),
    };
    println!(
        "{name:<10} {:>8.0} req/s   p50 {:>6} us   p99 {:>6} us{micros}",
        report.rate,
        report.p50.as_micros(),
        report.p99.as_micros(),
    );
    Ok(report)
}
