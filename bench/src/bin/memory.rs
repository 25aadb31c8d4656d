//! Memory of live idle instances, and the CPU time that a server with many of them spends on nothing.

#![allow(
    clippy::disallowed_methods,
    reason = "what is measured here is a process in real time"
)]

use std::{thread, time::Duration};

use bench::{
    Result,
    compare::Sample,
    load::Load,
    options::Options,
    proc,
    server::{Role, Server, serve_if_started_as_server},
};

/// What an instance may cost above its struct and its id, in bytes.
const BUDGET: f64 = 1024.0;
/// The user's own part: a counter's `u64` and an id of 12 characters.
const OWN: f64 = 8.0 + 12.0;

fn main() -> Result<()> {
    if serve_if_started_as_server()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let role = options.take("--server", Role::Pinned)?;
    let instances: usize = options.take("--instances", 1_000_000)?;
    let idle = options.take_seconds("--idle-seconds", 30.0)?;
    let cores = options.take_cores()?;
    options.finish()?;

    let server = Server::start(role, &cores)?;
    // Connection buffers and first-use allocations are not the instances'.
    let warm_up = Load::increments(
        server.addr(),
        64,
        (0..10_000).map(|id| format!("{:012}", id % 100)),
    );
    Sample::take(&server, || warm_up.run_once())?;
    let before = proc::resident_bytes(server.pid())?;
    let ids = (1_000..1_000 + instances).map(|id| format!("{id:012}"));
    let load = Load::increments(server.addr(), 64, ids);
    Sample::take(&server, || load.run_once())?.print("activation");
    thread::sleep(Duration::from_secs(2));
    let after = proc::resident_bytes(server.pid())?;

    let busy = proc::cpu_time(server.pid())?;
    thread::sleep(idle);
    let spent = proc::cpu_time(server.pid())? - busy;

    let each = after.saturating_sub(before) as f64 / instances as f64;
    println!(
        "{instances} live idle instances: {each:.0} bytes each, {:.0} above struct and id",
        each - OWN
    );
    println!(
        "idle: {:.2} % of one core over {idle:?}",
        100.0 * spent.as_secs_f64() / idle.as_secs_f64()
    );
    println!("ratio: {:.3}", (each - OWN) / BUDGET);
    Ok(())
}
