//! A private Redis.

use pinned::domain::Domain;
use pinned_testing::{RedisOptions, RedisPersistence, RedisServer};

use super::{Connection, is_listening};

#[tokio::test]
async fn a_redis_serves_and_is_flushed() {
    let redis = RedisServer::start().await;
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{}/", redis.port()));
    assert_eq!(redis.cli(&["SET", "key", "two words"]).await, "OK");
    assert_eq!(redis.cli(&["GET", "key"]).await, "two words");
    redis.flush().await;
    assert_eq!(redis.cli(&["DBSIZE"]).await, "0");
}

#[tokio::test]
async fn each_redis_is_its_own_and_the_shared_one_is_the_same() {
    let (one, other) = tokio::join!(RedisServer::start(), RedisServer::start());
    assert_ne!(one.port(), other.port());
    one.cli(&["SET", "key", "value"]).await;
    assert_eq!(other.cli(&["EXISTS", "key"]).await, "0");
    let (shared, again) = tokio::join!(RedisServer::shared(), RedisServer::shared());
    assert_eq!(shared.port(), again.port());
}

#[tokio::test]
async fn a_killed_redis_is_gone_and_restarts_empty_on_its_port() {
    let redis = RedisServer::start().await;
    let pid = redis.pid();
    assert!(pid.is_some());
    redis.cli(&["SET", "key", "value"]).await;
    let mut connection = Connection::open(redis.port()).expect("a connection");

    redis.kill().await;
    redis.kill().await;
    assert_eq!(redis.pid(), None);
    assert_eq!(connection.receive(), "");
    assert!(!is_listening(redis.port()));

    redis.restart().await;
    assert!(redis.pid().is_some());
    assert_ne!(redis.pid(), pid);
    assert_eq!(redis.cli(&["EXISTS", "key"]).await, "0");
}

#[tokio::test]
async fn with_the_append_only_file_what_was_acknowledged_is_there_after_a_kill() {
    let persistence = RedisPersistence::Aof;
    let redis = RedisServer::start_with(RedisOptions { persistence }).await;
    redis.cli(&["SET", "key", "value"]).await;
    redis.kill().await;
    redis.restart().await;
    redis.cli(&["APPEND", "key", ", more"]).await;
    // One that runs is killed.
    redis.restart().await;
    assert_eq!(redis.cli(&["GET", "key"]).await, "value, more");
}

#[tokio::test]
async fn a_paused_redis_answers_once_it_is_resumed() {
    let redis = RedisServer::start().await;
    let mut connection = Connection::open(redis.port()).expect("a connection");
    connection.send("PING");
    assert_eq!(connection.receive(), "+PONG");

    redis.pause().await;
    connection.send("PING");
    // Connections are taken by the system.
    let mut other = Connection::open(redis.port()).expect("a connection");
    other.send("PING");
    assert!(connection.has_received_nothing() && other.has_received_nothing());
    redis.resume().await;
    assert_eq!(connection.receive(), "+PONG");
    assert_eq!(other.receive(), "+PONG");
}

#[tokio::test]
async fn a_paused_redis_can_be_killed_and_restarted() {
    let redis = RedisServer::start().await;
    redis.pause().await;
    redis.restart().await;
    assert_eq!(redis.cli(&["PING"]).await, "PONG");
    redis.pause().await;
    redis.kill().await;
    assert_eq!(redis.pid(), None);
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_stands_while_a_redis_starts() {
    let domain = Domain::real();
    let before = domain.monotonic();
    let redis = RedisServer::start().await;
    redis.cli(&["PING"]).await;
    assert_eq!(domain.monotonic(), before);
}

#[tokio::test]
#[should_panic(expected = "ERR")]
async fn an_error_of_redis_is_a_panic() {
    let redis = RedisServer::start().await;
    redis.cli(&["NO-SUCH-COMMAND"]).await;
}

#[tokio::test]
#[should_panic(expected = "Redis does not run")]
async fn what_does_not_run_cannot_be_paused() {
    let redis = RedisServer::start().await;
    redis.kill().await;
    redis.pause().await;
}
