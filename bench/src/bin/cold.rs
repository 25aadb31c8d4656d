//! Requests for ids that were never seen, beside requests for live ones, on the same server.

use bench::{
    Result,
    compare::{Sample, median_ratio},
    load::Load,
    options::Options,
    server::{Role, Server, serve_if_started_as_server},
};

fn main() -> Result<()> {
    if serve_if_started_as_server()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let role = options.take("--server", Role::Pinned)?;
    let rounds: usize = options.take("--rounds", 5)?;
    let turn = options.take_seconds("--seconds", 1.0)?;
    let connections = options.take("--connections", 16)?;
    let fresh: usize = options.take("--fresh", 50_000)?;
    let cores = options.take_cores()?;
    options.finish()?;

    let server = Server::start(role, &cores)?;
    let live = (0..1_000).map(|id| format!("live-{id:06}"));
    let warm = Load::increments(server.addr(), connections, live);
    Sample::take(&server, || warm.run_once())?;
    let (mut warm_row, mut cold_row) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let sample = Sample::take(&server, || warm.run_for(turn))?;
        sample.print("warm");
        warm_row.push(sample);
        let ids = (0..fresh).map(|id| format!("r{round:03}-{id:06}"));
        let cold = Load::increments(server.addr(), connections, ids);
        let sample = Sample::take(&server, || cold.run_once())?;
        sample.print("cold");
        cold_row.push(sample);
    }
    let ratio = median_ratio(&cold_row, &warm_row, |sample| sample.report.rate());
    println!("ratio: {ratio:.3}");
    Ok(())
}
