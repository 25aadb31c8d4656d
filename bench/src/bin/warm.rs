//! Requests per second of a server whose instances are all live, beside others under the same load.

use bench::{
    Result,
    compare::{interleave, median, median_ratio},
    load::Load,
    options::Options,
    server::{Role, Server, serve_if_started_as_server},
};

fn main() -> Result<()> {
    if serve_if_started_as_server()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let roles = options.take_roles("--servers", &[Role::Pinned, Role::Axum, Role::Hyper])?;
    let rounds = options.take("--rounds", 5)?;
    let turn = options.take_seconds("--seconds", 2.0)?;
    let connections = options.take("--connections", 64)?;
    let ids: usize = options.take("--ids", 1_000)?;
    let cores = options.take_cores()?;
    options.finish()?;

    let mut contestants = Vec::new();
    for role in roles {
        let server = Server::start(role, &cores)?;
        let ids = (0..ids).map(|id| format!("user-{id:06}"));
        let load = Load::increments(server.addr(), connections, ids);
        contestants.push((server, load));
    }
    let rows = interleave(&contestants, rounds, turn)?;

    let names: Vec<_> = contestants
        .iter()
        .map(|(server, _)| server.role().name())
        .collect();
    println!();
    for (name, row) in names.iter().zip(&rows) {
        let rate = median(row.iter().map(|sample| sample.report.rate()));
        let cpu = median(row.iter().map(|sample| sample.server_micros_per_request()));
        println!("{name:<10} median {rate:>9.0} req/s   server {cpu:>7.2} us/req");
    }
    let [subject, against @ ..] = rows.as_slice() else {
        return Err("--servers needs a server to measure".into());
    };
    for (name, other) in names[1..].iter().zip(against) {
        let rate = median_ratio(subject, other, |sample| sample.report.rate());
        let cpu = median_ratio(other, subject, |sample| sample.server_micros_per_request());
        println!(
            "{}/{name}: {rate:.3} by rate, {cpu:.3} by server cpu",
            names[0]
        );
    }
    let ratio = against.first().map_or(1.0, |other| {
        median_ratio(subject, other, |sample| sample.report.rate())
    });
    println!("ratio: {ratio:.3}");
    Ok(())
}
