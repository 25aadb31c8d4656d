//! A private PostgreSQL.

use std::process::{Command, Stdio};

use pinned_testing::PostgresServer;

use super::is_listening;

fn query(server: &PostgresServer, dsn: &str, sql: &str) -> String {
    let mut psql = Command::new(server.binary("psql"));
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
        .arg(format!("--dbname={dsn}"))
        .arg(format!("--command={sql}"))
        .stdin(Stdio::null());
    let output = psql.output().expect("psql");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn a_killed_postgresql_restarts_on_its_port_with_what_was_committed() {
    let server = PostgresServer::start().await;
    let (port, dsn) = (server.port(), server.create_database().await);
    query(&server, &dsn, "CREATE TABLE t (n int)");
    query(&server, &dsn, "INSERT INTO t VALUES (1)");

    server.kill().await;
    server.kill().await;
    assert!(!is_listening(port));
    server.restart().await;
    assert_eq!(server.port(), port);
    query(&server, &dsn, "INSERT INTO t VALUES (2)");

    // One that runs is killed.
    server.restart().await;
    assert_eq!(query(&server, &dsn, "SELECT sum(n) FROM t"), "3");
}
