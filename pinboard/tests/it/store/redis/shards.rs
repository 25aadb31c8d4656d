//! Any number of shards.

use std::collections::BTreeSet;
use std::slice::from_ref;

use pinboard::store::{
    EndMode, Reclaimed, RedisStore, RegistryStore, Release, SessionId, StoreError, StoreOptions,
};
use pinned_domain::Domain;
use pinned_testing::RedisServer;

use super::support::{STEADY, info, key, lives, place, ready, url, worker, worker_of};

const IDS: usize = 300;

async fn listed(store: &RedisStore, session: &SessionId) -> BTreeSet<String> {
    let (mut ids, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let page = store.held_by(session, "*", "/ns", cursor).await;
        let (some, next) = page.expect("it answers");
        ids.extend(some.iter().map(|id| id.to_string()));
        if next == 0 {
            return ids;
        }
        cursor = next;
    }
}

#[tokio::test]
async fn one_shard_or_many_do_the_same() {
    let server = RedisServer::start().await;
    for shards in [1, 2, 64, 1_000] {
        server.flush().await;
        let store = ready(&server.url(), StoreOptions { shards, ..STEADY }).await;
        let first = worker_of(&store, "client").await;
        let keys: Vec<_> = (0..IDS).map(|n| key(&format!("id-{n}"))).collect();
        for key in &keys {
            place(&store, key, &first).await;
        }
        let all: BTreeSet<_> = keys.iter().map(|key| key.id.to_string()).collect();
        assert_eq!(listed(&store, &first).await, all, "{shards} shards");
        let counts = store.row_counts().await.expect("it answers");
        assert_eq!(counts, [("*".into(), "/ns".into(), IDS as u64)]);

        let second = worker_of(&store, "client").await;
        assert!(!lives(&store, &first).await.expect("it answers"));
        let moved = store.reclaim(&second, from_ref(&first), &keys).await;
        let moved = moved.expect("it answers");
        assert!(
            moved
                .iter()
                .all(|moved| matches!(moved, Reclaimed::Moved { .. }))
        );
        assert!(lives(&store, &second).await.expect("it answers"));
        let half: Vec<_> = keys[..IDS / 2]
            .iter()
            .map(|key| Release {
                session: second.clone(),
                key: key.clone(),
                epoch: None,
            })
            .collect();
        assert_eq!(
            store.release(&half).await.expect("it answers"),
            (IDS / 2) as u64
        );
        assert!(
            store
                .end_session(&second, EndMode::Now)
                .await
                .expect("it answers")
        );
        while store.sweep().await.expect("it answers") {}
        assert_eq!(store.row_counts().await.expect("it answers"), []);
    }
}

#[tokio::test]
async fn without_a_shard_there_is_no_store() {
    let options = StoreOptions {
        shards: 0,
        ..STEADY
    };
    let opened = RedisStore::open(&url("redis://127.0.0.1:1"), options, &Domain::real());
    assert!(matches!(opened, Err(StoreError::Unusable(_))));
}

// A long list is cut up: no call of a script holds up the server for long.
#[tokio::test]
async fn long_lists_go_in_batches() {
    const ROWS: usize = 5_000;
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    let keys: Vec<_> = (0..ROWS).map(|n| key(&format!("id-{n}"))).collect();
    server.cli(&["CONFIG", "RESETSTAT"]).await;
    let claimed = store
        .reclaim(&session, &[], &keys)
        .await
        .expect("it answers");
    let fresh: BTreeSet<_> = claimed
        .iter()
        .filter_map(|claimed| match claimed {
            Reclaimed::Claimed { epoch } => Some(*epoch),
            _ => None,
        })
        .collect();
    assert!(
        !fresh.is_empty() && claimed.len() == ROWS,
        "{}",
        claimed.len()
    );
    let releases: Vec<_> = keys
        .iter()
        .map(|key| Release {
            session: session.clone(),
            key: key.clone(),
            epoch: None,
        })
        .collect();
    assert_eq!(
        store.release(&releases).await.expect("it answers"),
        ROWS as u64
    );
    let stats = info(&server, "commandstats", "cmdstat_evalsha").await;
    let calls = stats
        .strip_prefix("calls=")
        .and_then(|stats| stats.split_once(','));
    let calls: usize = calls.and_then(|(calls, _)| calls.parse().ok()).unwrap_or(0);
    let expected = 2 * ROWS.div_ceil(256);
    assert!(
        (expected..expected + 3 * usize::from(STEADY.shards)).contains(&calls),
        "{calls} calls: {stats}"
    );
}
