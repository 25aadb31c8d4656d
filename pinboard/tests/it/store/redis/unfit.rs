//! Servers that do not do.

use pinboard::store::{RedisStore, RegistryStore, StoreError};
use pinned_domain::{Domain, TaskHandle};
use pinned_testing::{RedisCluster, RedisServer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::support::{STEADY, open, until};

/// What keeps a store from being of use.
async fn refusal(store: &RedisStore) -> String {
    match store.prepare().await {
        Err(StoreError::Unusable(why)) => why,
        other => panic!("it is of no use, and says {other:?}"),
    }
}

/// Something that speaks as Redis does, and says this of itself.
async fn pretender(about: &'static str, scripts: &'static str) -> (String, TaskHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("it has one");
    let domain = Domain::real();
    let accepting = domain.clone();
    let task = domain.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            accepting.spawn(serve(BufReader::new(stream), about, scripts));
        }
    });
    (format!("redis://{at}"), task)
}

async fn serve(mut stream: BufReader<tokio::net::TcpStream>, about: &str, scripts: &str) {
    while let Some(command) = read(&mut stream).await {
        let answer = match command[0].as_str() {
            "HELLO" => "%1\r\n+proto\r\n:3\r\n".to_owned(),
            "INFO" => format!("${}\r\n{about}\r\n", about.len()),
            "EVALSHA" | "EVAL" => scripts.to_owned(),
            "GET" => "$5\r\nwrong\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<tokio::net::TcpStream>) -> Option<Vec<String>> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let parts: usize = line.trim().strip_prefix('*')?.parse().ok()?;
    let mut command = Vec::new();
    for _ in 0..parts {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let length: usize = line.trim().strip_prefix('$')?.parse().ok()?;
        let mut part = vec![0; length + 2];
        stream.read_exact(&mut part).await.ok()?;
        command.push(String::from_utf8_lossy(&part[..length]).into_owned());
    }
    Some(command)
}

#[tokio::test]
async fn what_a_server_lacks_is_said() {
    for (about, said) in [
        (
            "redis_version:6.2.14\r\nredis_mode:standalone\r\nrun_id:abc",
            "6.2.14",
        ),
        ("redis_mode:standalone\r\nrun_id:abc", "version"),
        ("redis_version:7.0.1\r\nredis_mode:standalone", "run_id"),
        (
            "redis_version:7.0.1\r\nredis_mode:standalone\r\nrun_id:a b",
            "run_id",
        ),
        (
            "redis_version:7.0.1\r\nredis_mode:cluster\r\nrun_id:abc",
            "redis+cluster://",
        ),
    ] {
        let (url, task) = pretender(about, ":0\r\n").await;
        let store = open(&url, STEADY);
        let why = refusal(&store).await;
        assert!(why.contains(said), "{why}");
        task.abort();
    }
}

#[tokio::test]
async fn a_server_whose_compare_and_set_does_not_compare_is_not_trusted() {
    let about = "redis_version:7.0.1\r\nredis_mode:standalone\r\nrun_id:abc\r\nrole:master";
    // Each script says that it has succeeded.
    let (url, task) = pretender(about, ":1\r\n").await;
    let why = refusal(&open(&url, STEADY)).await;
    assert!(why.contains("compare-and-set"), "{why}");
    // Others answer what no script does.
    let (url, other) = pretender(about, "$2\r\nno\r\n").await;
    let why = refusal(&open(&url, STEADY)).await;
    assert!(why.contains("unexpected"), "{why}");
    task.abort();
    other.abort();
}

#[tokio::test]
async fn a_server_that_throws_data_away_is_refused() {
    let server = RedisServer::start().await;
    server.cli(&["CONFIG", "SET", "maxmemory", "100mb"]).await;
    server
        .cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"])
        .await;
    let store = open(&server.url(), STEADY);
    let why = refusal(&store).await;
    assert!(
        why.contains("volatile-lru") && why.contains("noeviction"),
        "{why}"
    );
    // It is looked at again, without a restart of the node.
    server
        .cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .await;
    until("the store", || async { store.prepare().await.is_ok() }).await;
}

// READONLY: what was the primary is a replica now, and another may come by the same name.
#[tokio::test]
async fn a_replica_is_waited_for_until_it_is_a_primary() {
    let primary = RedisServer::start().await;
    let server = RedisServer::start().await;
    let store = super::support::ready(&server.url(), STEADY).await;
    let session = super::support::worker(&store).await;
    let port = primary.port().to_string();
    server.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    let refused = super::support::try_place(&store, &super::support::key("a"), &session).await;
    let refused = refused.expect_err("it does not write any more");
    assert!(refused.is_transient(), "{refused:?}");
    until("that it is seen as a replica", || async {
        store.ping().await.is_err()
    })
    .await;
    server.cli(&["REPLICAOF", "NO", "ONE"]).await;
    until("the primary", || async { store.prepare().await.is_ok() }).await;
}

#[tokio::test]
async fn a_cluster_and_a_server_are_told_apart() {
    let cluster = RedisCluster::shared().await;
    let node = cluster.nodes()[0].url();
    let why = refusal(&open(&node, STEADY)).await;
    assert!(why.contains("redis+cluster://"), "{why}");

    let server = RedisServer::start().await;
    let url = server.url().replace("redis://", "redis+cluster://");
    let why = refusal(&open(&url, STEADY)).await;
    assert!(why.contains("use redis://"), "{why}");
}

// P12.4: a server whose memory is full still serves those that are there.
#[tokio::test]
async fn a_server_without_memory_goes_on_with_what_it_has() {
    let server = RedisServer::start().await;
    let store = super::support::ready(&server.url(), STEADY).await;
    let session = super::support::worker(&store).await;
    let held = super::support::key("held");
    super::support::place(&store, &held, &session).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let refused = super::support::try_place(&store, &super::support::key("a"), &session).await;
    let refused = refused.expect_err("there is no room");
    assert!(refused.is_transient(), "{refused:?}");
    assert!(
        super::support::lives(&store, &session)
            .await
            .expect("it answers")
    );
    let release = pinboard::store::Release {
        session: session.clone(),
        key: held.clone(),
        epoch: None,
    };
    assert_eq!(store.release(&[release]).await.expect("it answers"), 1);
    super::support::worker(&store).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    super::support::place(&store, &held, &session).await;
}
