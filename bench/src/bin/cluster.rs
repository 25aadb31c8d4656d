//! Calls from one instance to another: on the same worker beside a dispatch within the process, and on another worker beside
//! a plain request through nginx.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::net::SocketAddr;

use bench::{
    Result,
    compare::median,
    options::Options,
    proxied::{Nginx, Node, NodeOptions, Serves, Worker, serve_if_started_as_worker},
};

fn main() -> Result<()> {
    if serve_if_started_as_worker()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 15)?;
    let calls: u32 = options.take("--calls", 2_000)?;
    options.finish()?;

    let here = Worker::start(Serves::Both, None)?;
    let (mut within, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        within.push(ask(here.addr(), &format!("cluster/target/{calls}"))?);
        direct.push(ask(here.addr(), &format!("direct/target/{calls}"))?);
    }
    let same = report(
        "same worker",
        &within,
        "dispatch within the process",
        &direct,
    );

    let node = Node::start(&NodeOptions::default())?;
    let _callee = Worker::start(Serves::Counters, Some(&node))?;
    let _caller = Worker::start(Serves::Callers, Some(&node))?;
    node.wait_until_placing("/counters/probe/increment")?;
    let plain = Worker::start(Serves::Counters, None)?;
    let nginx = Nginx::start(plain.addr())?;
    let port = nginx.addr().port();
    let (mut through, mut proxied) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        through.push(ask(node.addr(), &format!("cluster/target/{calls}"))?);
        proxied.push(ask(node.addr(), &format!("port/{port}/target/{calls}"))?);
    }
    let other = report(
        "another worker",
        &through,
        "reqwest through nginx",
        &proxied,
    );
    println!("ratio on the same worker: {same:.3}");
    println!("ratio: {other:.3}");
    Ok(())
}

/// The median of what each of the calls took, in nanoseconds.
fn ask(addr: SocketAddr, what: &str) -> Result<f64> {
    let took: Vec<u64> = ureq::post(format!("http://{addr}/callers/caller/{what}"))
        .send_empty()?
        .body_mut()
        .read_json()?;
    Ok(median(took.into_iter().map(|nanos| nanos as f64)))
}

fn report(name: &str, ours: &[f64], against: &str, theirs: &[f64]) -> f64 {
    println!(
        "{name}: {:.2} us; {against}: {:.2} us",
        median(ours.iter().copied()) / 1e3,
        median(theirs.iter().copied()) / 1e3,
    );
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}
