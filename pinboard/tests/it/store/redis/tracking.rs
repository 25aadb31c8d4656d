//! What a node is told to forget (P5.7).

use std::collections::BTreeSet;
use std::sync::Arc;

use pinboard::store::{Invalidation, RedisStore, RegistryStore, Release, SessionId};
use pinned_domain::Domain;
use pinned_testing::RedisServer;
use tokio::sync::mpsc;

use super::support::{SOON, STEADY, info, key, place, ready, try_place, until, worker};

async fn release(store: &RedisStore, id: &str, session: &SessionId) {
    let release = Release {
        session: session.clone(),
        key: key(id),
        epoch: None,
    };
    assert_eq!(store.release(&[release]).await.expect("it answers"), 1);
}

/// Waits to be told of rows.
async fn hear(told: &mut mpsc::Receiver<Invalidation>, mut ids: BTreeSet<String>) {
    while !ids.is_empty() {
        let heard = Domain::real().timeout(SOON, told.recv()).await;
        match heard {
            Ok(Some(Invalidation::Row(key))) => drop(ids.remove(&*key.id)),
            other => panic!("expected to be told of {ids:?}, found {other:?}"),
        }
    }
}

/// Two nodes, and what the first is told; it has nothing to forget yet.
async fn two_nodes(
    server: &RedisServer,
) -> (
    Arc<RedisStore>,
    Arc<RedisStore>,
    mpsc::Receiver<Invalidation>,
) {
    let (one, other) = (
        ready(&server.url(), STEADY).await,
        ready(&server.url(), STEADY).await,
    );
    let mut told = one.invalidations().expect("it can tell");
    assert!(one.invalidations().is_none(), "once");
    // The connection itself has it forget everything.
    assert_eq!(told.recv().await, Some(Invalidation::Everything));
    (one, other, told)
}

#[tokio::test]
async fn a_row_that_a_claim_has_read_is_watched() {
    let server = RedisServer::start().await;
    let (one, other, mut told) = two_nodes(&server).await;
    let session = worker(&one).await;
    place(&one, &key("placed"), &session).await;
    place(&other, &key("held"), &session).await;
    try_place(&one, &key("held"), &session)
        .await
        .expect("it answers");
    assert_eq!(
        told.try_recv().ok(),
        None,
        "its own claim is nothing to forget"
    );
    for id in ["placed", "held"] {
        release(&other, id, &session).await;
        hear(&mut told, BTreeSet::from([id.to_owned()])).await;
    }
}

#[tokio::test]
async fn only_rows_are_watched() {
    let server = RedisServer::start().await;
    let (one, other, mut told) = two_nodes(&server).await;
    let session = worker(&one).await;
    for n in 0..10 {
        place(&one, &key(&n.to_string()), &session).await;
    }
    one.sessions_since(0).await.expect("it answers");
    one.row_counts().await.expect("it answers");
    // What every claim and every heartbeat changes is nothing that a node remembers.
    let keys = info(&server, "stats", "tracking_total_keys").await;
    assert_eq!(keys, "10");
    let others = worker(&other).await;
    for n in 10..20 {
        place(&other, &key(&n.to_string()), &others).await;
    }
    other.sweep().await.expect("it answers");
    release(&other, "10", &others).await;
    release(&other, "0", &session).await;
    let first = Domain::real().timeout(SOON, told.recv()).await;
    assert_eq!(first, Ok(Some(Invalidation::Row(key("0")))));
    assert_eq!(told.try_recv().ok(), None);
}

#[tokio::test]
async fn an_id_that_nobody_holds_is_watched_too() {
    let server = RedisServer::start().await;
    let (one, other, mut told) = two_nodes(&server).await;
    let session = worker(&other).await;
    assert_eq!(one.row(&key("none")).await.expect("it answers"), None);
    place(&other, &key("none"), &session).await;
    hear(&mut told, BTreeSet::from(["none".to_owned()])).await;
}

#[tokio::test]
async fn a_connection_that_is_lost_has_the_node_forget_everything() {
    let server = RedisServer::start().await;
    let (one, other, mut told) = two_nodes(&server).await;
    let session = worker(&other).await;
    place(&other, &key("a"), &session).await;
    let row = one.row(&key("a")).await.expect("it answers");
    assert!(row.is_some());
    server
        .cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        .await;
    let heard = Domain::real().timeout(SOON, told.recv()).await;
    assert_eq!(heard, Ok(Some(Invalidation::Everything)));
    until("the connection", || async { one.ping().await.is_ok() }).await;
    // Over the next connection all is as before.
    let row = one.row(&key("a")).await.expect("it answers");
    assert!(row.is_some());
    until("the other's connection", || async {
        other.ping().await.is_ok()
    })
    .await;
    release(&other, "a", &session).await;
    loop {
        match Domain::real().timeout(SOON, told.recv()).await {
            Ok(Some(Invalidation::Everything)) => {}
            heard => {
                assert_eq!(heard, Ok(Some(Invalidation::Row(key("a")))));
                break;
            }
        }
    }
}
