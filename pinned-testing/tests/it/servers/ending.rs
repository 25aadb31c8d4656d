//! What is left of a server: nothing.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pinned::domain::Domain;
use pinned_testing::{PostgresServer, RedisServer};

use super::is_listening;

/// Set in the process of a test that runs itself again.
const INNER: &str = "PINNED_TESTING_INNER";
const SOON: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// This test binary, about to run one test alone.
fn inner(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this binary"));
    command
        .args(["--exact", "--nocapture", test])
        .env(INNER, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The guardian is not a child of this process: there is nothing to wait on but what it does.
async fn wait_until_gone(folder: &str, port: u16) {
    let domain = Domain::real();
    let gone = async {
        while Path::new(folder).exists() || is_listening(port) {
            domain.sleep(POLL).await;
        }
    };
    let outcome = domain.timeout(SOON, gone).await;
    assert!(outcome.is_ok(), "{folder} or port {port} is still there");
}

#[tokio::test]
async fn dropping_a_redis_ends_it_and_removes_its_folder() {
    let redis = RedisServer::start().await;
    let (folder, port) = (folder_of(&redis).await, redis.port());
    assert!(Path::new(&folder).exists());
    redis.pause().await;
    drop(redis);
    assert!(!Path::new(&folder).exists());
    assert!(!is_listening(port));
}

async fn folder_of(redis: &RedisServer) -> String {
    let answer = redis.cli(&["CONFIG", "GET", "dir"]).await;
    answer.lines().last().expect("a value").to_owned()
}

#[tokio::test]
async fn a_redis_is_gone_after_its_process_was_killed() {
    is_gone_after_its_process_was_killed(
        "servers::ending::a_redis_is_gone_after_its_process_was_killed",
        async {
            let running = RedisServer::shared().await;
            println!("server {} {}", running.port(), folder_of(running).await);
            // Neither a stopped server nor one that is down is in the way.
            running.pause().await;
            let killed = RedisServer::start().await;
            println!("server {} {}", killed.port(), folder_of(&killed).await);
            killed.kill().await;
            println!("ready");
            std::future::pending().await
        },
    )
    .await;
}

#[tokio::test]
async fn a_postgresql_is_gone_after_its_process_was_killed() {
    is_gone_after_its_process_was_killed(
        "servers::ending::a_postgresql_is_gone_after_its_process_was_killed",
        async {
            let server = PostgresServer::start().await;
            let folder = data_of(&server);
            println!("server {} {folder}", server.port());
            println!("ready");
            std::future::pending().await
        },
    )
    .await;
}

fn data_of(server: &PostgresServer) -> String {
    let mut psql = Command::new(server.binary("psql"));
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align"])
        .arg(format!("--dbname={}", server.dsn("postgres")))
        .arg("--command=SHOW data_directory");
    let output = psql.output().expect("psql");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `test`, which is the caller, again, there does `work`, which tells of servers and then that it is ready, and
/// kills it.
async fn is_gone_after_its_process_was_killed(
    test: &str,
    work: impl Future<Output = std::convert::Infallible>,
) {
    if env::var_os(INNER).is_some() {
        match work.await {}
    }
    let mut process = inner(test).spawn().expect("this binary");
    let mut servers = Vec::new();
    for line in BufReader::new(process.stdout.take().expect("piped")).lines() {
        let line = line.expect("text");
        // The harness has begun a line.
        let line = line.rsplit(" ... ").next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["server", port, folder] => {
                servers.push((port.parse().expect("a port"), folder.to_owned()));
            }
            ["ready"] => break,
            _ => {}
        }
    }
    assert!(!servers.is_empty(), "the other process tells of none");
    assert!(servers.iter().all(|(_, folder)| Path::new(folder).exists()));
    process.kill().expect("a child");
    process.wait().expect("a child");
    for (port, folder) in servers {
        wait_until_gone(&folder, port).await;
    }
}

#[tokio::test]
async fn what_is_not_installed_is_named_with_its_package() {
    if env::var_os(INNER).is_some() {
        RedisServer::start().await;
    }
    let mut without = inner("servers::ending::what_is_not_installed_is_named_with_its_package");
    let output = without.env("PATH", "").output().expect("this binary");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("install the package `redis-server` (Debian)"),
        "{said}"
    );
}
