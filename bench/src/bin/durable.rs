//! A durable counter over HTTP on SQLite, beside a Durable Object on workerd that stores its count on the same disk.
//!
//! Both answer an increment once it is flushed. After the rounds both servers are killed and started anew, and must go
//! on counting from where they were: neither may have measured a write that was not there.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    path::Path,
};

use bench::{
    Result,
    compare::{interleave, median, median_ratio},
    cores::Cores,
    load::Load,
    options::Options,
    server::{Role, Server, serve_if_started_as_server},
};

const ROLES: [Role; 2] = [Role::PinnedDurable, Role::WorkerdDurable];

fn main() -> Result<()> {
    if serve_if_started_as_server()? {
        return Ok(());
    }
    let mut options = Options::from_env();
    let rounds = options.take("--rounds", 9)?;
    let turn = options.take_seconds("--seconds", 2.0)?;
    let connections = options.take("--connections", 64)?;
    let ids: usize = options.take("--ids", 1_000)?;
    let folder: String = options.take("--folder", ".".to_owned())?;
    let cores = options.take_cores()?;
    options.finish()?;

    let folder = tempfile::tempdir_in(folder)?;
    let mut contestants = Vec::new();
    for role in ROLES {
        let own = folder.path().join(role.name());
        fs::create_dir(&own)?;
        let server = Server::start_in(role, &cores, &own)?;
        let ids = (0..ids).map(|id| format!("user-{id:06}"));
        let load = Load::increments(server.addr(), connections, ids);
        contestants.push((server, load));
    }
    let rows = interleave(&contestants, rounds, turn)?;

    println!();
    for (role, row) in ROLES.iter().zip(&rows) {
        let rate = median(row.iter().map(|sample| sample.report.rate()));
        let cpu = median(row.iter().map(|sample| sample.server_micros_per_request()));
        let bytes = bytes_in(&folder.path().join(role.name()))?;
        let name = role.name();
        println!(
            "{name:<16} median {rate:>8.0} req/s   server {cpu:>7.2} us/req   {:>5.1} MB on disk",
            bytes as f64 / 1e6
        );
    }
    for (server, _) in contestants {
        goes_on_after_a_kill(server, &cores, folder.path())?;
    }
    let [pinned, workerd] = &rows[..] else {
        return Err("two servers give two rows".into());
    };
    let ratio = median_ratio(pinned, workerd, |sample| sample.report.rate());
    println!("ratio: {ratio:.3}");
    Ok(())
}

fn goes_on_after_a_kill(server: Server, cores: &Cores, folder: &Path) -> Result<()> {
    let role = server.role();
    let before = increment(&server)?;
    // Dropped, it is killed.
    drop(server);
    let after = increment(&Server::start_in(role, cores, &folder.join(role.name()))?)?;
    if after != before + 1 {
        return Err(format!("{}: killed at {before}, it went on at {after}", role.name()).into());
    }
    Ok(())
}

/// Increments one of the counters, and gives its new count.
fn increment(server: &Server) -> Result<u64> {
    let addr = server.addr();
    let mut stream = TcpStream::connect(addr)?;
    write!(
        stream,
        "POST /counters/user-000000/increment HTTP/1.1\r\nhost: {addr}\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("an answer without a body")?;
    Ok(body.parse()?)
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => bytes_in(&entry.path())?,
            false => metadata.len(),
        };
    }
    Ok(bytes)
}
