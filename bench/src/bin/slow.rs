//! Latency of healthy instances beside one that never answers: two servers of one kind, one with a wedged instance.

use bench::{
    Result,
    compare::{interleave, median_ratio},
    cores::Cores,
    load::{Connection, Load, post},
    options::Options,
    server::{Role, Server, serve_if_started_as_server},
};
use tokio::runtime;

/// Requests that wait behind the wedged one.
const WAITING: usize = 100;

fn main() -> Result<()> {
    if serve_if_started_as_server()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let role = options.take("--server", Role::Pinned)?;
    let rounds = options.take("--rounds", 6)?;
    let turn = options.take_seconds("--seconds", 2.0)?;
    let connections = options.take("--connections", 32)?;
    let cores = options.take_cores()?;
    options.finish()?;

    let contestants = [
        contestant(role, &cores, connections)?,
        contestant(role, &cores, connections)?,
    ];
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let _open = runtime.block_on(wedge(&contestants[1].0))?;
    println!("second of each pair: with one wedged instance and {WAITING} requests waiting for it");
    let [healthy, wedged] = &interleave(&contestants, rounds, turn)?[..] else {
        return Err("two servers give two rows".into());
    };
    let ratio = median_ratio(wedged, healthy, |sample| {
        sample.report.latency(0.99).as_secs_f64()
    });
    println!("ratio: {ratio:.3}");
    Ok(())
}

fn contestant(role: Role, cores: &Cores, connections: usize) -> Result<(Server, Load)> {
    let server = Server::start(role, cores)?;
    let ids = (0..1_000).map(|id| format!("user-{id:06}"));
    let load = Load::increments(server.addr(), connections, ids);
    Ok((server, load))
}

/// The connections, which must stay open for the requests to stay in flight.
async fn wedge(server: &Server) -> Result<Vec<Connection>> {
    let stall = post(server.addr(), "/counters/wedged/stall");
    let increment = post(server.addr(), "/counters/wedged/increment");
    let mut connections = Vec::new();
    for request in std::iter::once(&stall).chain(std::iter::repeat_n(&increment, WAITING)) {
        let mut connection = Connection::open(server.addr()).await?;
        connection.send(request).await?;
        connections.push(connection);
    }
    Ok(connections)
}
