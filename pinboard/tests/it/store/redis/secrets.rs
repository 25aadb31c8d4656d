//! URLs, and the passwords in them.

use std::error::Error;

use pinboard::store::{RedisStore, RedisUrl, RegistryStore, StoreError};
use pinned_domain::Domain;
use pinned_testing::RedisServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::support::{STEADY, open, place, ready, worker};

const PASSWORD: &str = "open-sesame";

/// All that an error says.
fn told(error: &StoreError) -> String {
    let mut told = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        told += &format!(" {error} {error:?}");
        source = error.source();
    }
    told
}

// P1.3
#[test]
fn urls_say_where_and_how() {
    for (text, shown) in [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://127.0.0.1:7/", "redis://127.0.0.1:7"),
        ("rediss://[::1]:7/3", "rediss://[::1]:7/3"),
        (
            "redis://:open-sesame@redis.example:7",
            "redis://redis.example:7",
        ),
        (
            "redis://me:open-sesame@redis.example",
            "redis://redis.example:6379",
        ),
        ("redis://me:p%40%3A%2F@h", "redis://h:6379"),
        (
            "redis+cluster://a:1,b,[::1]:3",
            "redis+cluster://a:1,b:6379,[::1]:3",
        ),
        (
            "rediss+cluster://me:open-sesame@a:1/",
            "rediss+cluster://a:1",
        ),
        ("redis+cluster://a:1/0", "redis+cluster://a:1"),
    ] {
        let url: RedisUrl = text
            .parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(url.to_string(), shown);
        assert!(!format!("{url:?}").contains(PASSWORD), "{url:?}");
    }
}

// P1.3: what is wrong is said, without what may be a password.
#[test]
fn what_is_no_url_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "scheme"),
        ("localhost:6379", "scheme"),
        ("http://localhost", "scheme"),
        ("redis://", "host"),
        ("redis://:open-sesame@", "host"),
        ("redis://:open-sesame@:6379", "host"),
        ("redis://:open-sesame@h:0", "port"),
        ("redis://:open-sesame@h:65536", "port"),
        ("redis://:open-sesame@h:x", "port"),
        ("redis://:open-sesame@h h", "host"),
        ("redis://:open-sesame@[::1", "host"),
        ("redis://:open-sesame@a,b", "cluster"),
        ("redis://:open-sesame@h/x", "database"),
        ("redis://:open-sesame@h/-1", "database"),
        ("redis://:open-sesame@h/99999", "database"),
        ("redis+cluster://:open-sesame@a,b/1", "database"),
        ("redis+cluster://:open-sesame@a,,b", "host"),
        ("redis://open-sesame@h", "password"),
        ("redis://me:@h", "password"),
        ("redis://:%FF@h", "UTF-8"),
        ("redis://:open-sesame@h?protocol=2", "options"),
        ("redis://:open-sesame#@h", "options"),
        ("redis://:open-sesame@h\r\n", "host"),
    ] {
        let refused = text.parse::<RedisUrl>().expect_err(text);
        let said = format!("{refused} {refused:?}");
        assert!(said.contains(reason), "{text}: {said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

#[tokio::test]
async fn a_password_is_used_and_never_shown() {
    let server = RedisServer::start().await;
    let rule = format!(">{PASSWORD}");
    server
        .cli(&[
            "ACL",
            "SETUSER",
            "pinboard",
            "on",
            &rule,
            "~pinboard:*",
            "+@all",
        ])
        .await;
    let at = format!("127.0.0.1:{}", server.port());
    let store = ready(&format!("redis://pinboard:{PASSWORD}@{at}/0"), STEADY).await;
    let session = worker(&store).await;
    place(&store, &super::support::key("a"), &session).await;
    let shown = format!("{store:?} {}", store.describe());
    assert!(shown.contains(&at) && !shown.contains(PASSWORD), "{shown}");
    assert!(
        store.describe().starts_with("Redis at redis://"),
        "{}",
        store.describe()
    );

    for wrong in ["pinboard:open-sesame-2", "nobody:open-sesame"] {
        let store = open(&format!("redis://{wrong}@{at}"), STEADY);
        let refused = store.prepare().await.expect_err("it is wrong");
        assert!(!refused.is_transient());
        let told = told(&refused);
        assert!(
            told.contains("password") && !told.contains(PASSWORD),
            "{told}"
        );
    }
    // One who may not do what it takes.
    server
        .cli(&["ACL", "SETUSER", "pinboard", "-evalsha"])
        .await;
    let refused = store.ping().await;
    refused.expect("it may still do this");
    let refused = store.sessions_since(0).await.expect_err("it may not");
    assert!(matches!(refused, StoreError::Unusable(_)), "{refused:?}");
    assert!(!told(&refused).contains(PASSWORD));
}

// Servers older than 6.0 repeat what they do not understand, with the password.
#[tokio::test]
async fn what_an_old_server_repeats_of_a_login_goes_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("it has one");
    let domain = Domain::real();
    let old = domain.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut said = vec![0; 4_096];
            let read = stream.read(&mut said).await.unwrap_or(0);
            let said = String::from_utf8_lossy(&said[..read]).into_owned();
            assert!(said.contains(PASSWORD), "it logs in: {said}");
            let answer = format!(
                "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `{PASSWORD}`, \r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let url = super::support::url(&format!("redis://:{PASSWORD}@{at}"));
    let store = RedisStore::open(&url, STEADY, &domain).expect("it needs no certificates");
    let refused = store.prepare().await.expect_err("it is too old");
    let told = told(&refused);
    assert!(told.contains("7.0") && !told.contains(PASSWORD), "{told}");
    old.abort();
}
