//! What a request costs a worker behind pinboard, where each is attested, beside the same worker alone.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{net::SocketAddr, time::Duration};

use bench::{
    Result,
    compare::median,
    options::Options,
    proc,
    proxied::{Node, NodeOptions, Serves, Worker, Wrk, serve_if_started_as_worker},
};

fn main() -> Result<()> {
    if serve_if_started_as_worker()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 7)?;
    let turn = options.take_seconds("--seconds", 3.0)?;
    let connections = options.take("--connections", 64)?;
    let ids: usize = options.take("--ids", 1_000)?;
    options.finish()?;

    let node = Node::start(&NodeOptions::default())?;
    let behind = Worker::start(Serves::Counters, Some(&node))?;
    let alone = Worker::start(Serves::Counters, None)?;
    node.wait_until_placing("/counters/probe/increment")?;
    let wrk = Wrk::new(connections, ids)?;
    for addr in [node.addr(), alone.addr()] {
        wrk.run(addr, turn)?;
    }
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let through = || take("behind pinboard", &wrk, node.addr(), turn, &behind);
        let straight = || take("alone", &wrk, alone.addr(), turn, &alone);
        let (ours, bare) = if round % 2 == 0 {
            (through()?, straight()?)
        } else {
            let bare = straight()?;
            (through()?, bare)
        };
        ratios.push(bare / ours);
    }
    println!("ratio: {:.3}", median(ratios));
    Ok(())
}

/// Microseconds of the worker's processor time for a request.
fn take(name: &str, wrk: &Wrk, addr: SocketAddr, turn: Duration, worker: &Worker) -> Result<f64> {
    let before = proc::cpu_time(worker.pid())?;
    let report = wrk.run(addr, turn)?;
    let spent = proc::cpu_time(worker.pid())?.saturating_sub(before);
    let each = spent.as_secs_f64() * 1e6 / (report.rate * turn.as_secs_f64());
    println!(
        "{name:<16} {:>8.0} req/s   {each:.2} us of the worker's cpu each",
        report.rate
    );
    Ok(each)
}
