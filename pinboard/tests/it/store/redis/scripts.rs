//! Scripts and what they cost.

use std::collections::BTreeMap;

use pinboard::store::{
    Claimed, EndMode, Expected, HeartbeatOutcome, MessageBody, PlacementKey, RegistryStore,
    StoreError,
};
use pinned_testing::{MetricsProbe, RedisServer};

use super::support::{
    STEADY, beat, claim, key, lives, new_session, place, ready, try_place, worker, worker_of,
};

/// How often each command was called since the last look.
async fn calls(server: &RedisServer) -> BTreeMap<String, u64> {
    let stats = server.cli(&["INFO", "commandstats"]).await;
    server.cli(&["CONFIG", "RESETSTAT"]).await;
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = rest.split_once(',')?;
        Some((name.to_owned(), calls.parse().ok()?))
    });
    calls.collect()
}

#[tokio::test]
async fn a_script_that_the_server_has_forgotten_is_sent_again() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    for n in 0..3 {
        server.cli(&["SCRIPT", "FLUSH"]).await;
        place(&store, &key(&n.to_string()), &session).await;
        server.cli(&["SCRIPT", "FLUSH"]).await;
        assert!(lives(&store, &session).await.expect("it answers"));
    }
    place(&store, &key("before"), &session).await;
    calls(&server).await;
    place(&store, &key("after"), &session).await;
    assert_eq!(calls(&server).await.get("eval"), None, "once is enough");
}

// P4.2: one claim, one call; what the bench counts on.
#[tokio::test]
async fn operations_take_as_few_calls_as_they_can() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    let version = store.sessions_since(0).await.expect("it answers").version;
    let shards = u64::from(STEADY.shards);
    calls(&server).await;

    place(&store, &key("a"), &session).await;
    try_place(&store, &key("a"), &session)
        .await
        .expect("it answers");
    assert_eq!(calls(&server).await.get("evalsha"), Some(&2));
    store.heartbeat(beat(&session)).await.expect("it answers");
    assert_eq!(calls(&server).await.get("evalsha"), Some(&(shards + 1)));
    store.sessions_since(version).await.expect("it answers");
    assert_eq!(calls(&server).await.get("evalsha"), Some(&1));
    store.row(&key("a")).await.expect("it answers");
    let calls = calls(&server).await;
    // The script reads in which life of the store the row was written (P4.4); the server watches what is read by itself.
    let (mark, row, watched) = (1, 1, 1);
    assert_eq!(
        (calls.get("evalsha"), calls.get("get")),
        (Some(&1), Some(&(mark + row + watched)))
    );
}

// P4.3: epochs fit 63 bits, and there is always a higher one.
#[tokio::test]
async fn no_epoch_leaves_none_above_it() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    for above in [u64::MAX, (1 << 62) + 1] {
        let mut asked = claim(&key("a"), &session, Expected::Vacant);
        asked.above = above;
        let refused = store.claim(asked).await;
        assert!(
            matches!(refused, Err(StoreError::Unusable(_))),
            "{refused:?}"
        );
    }
    for (n, above) in [(1 << 62) - 1, 1 << 62].into_iter().enumerate() {
        let mut asked = claim(&key(&n.to_string()), &session, Expected::Vacant);
        asked.above = above;
        let claimed = store.claim(asked).await.expect("it answers");
        let expected = Claimed::Placed {
            epoch: above + 1,
            replaced: false,
        };
        assert_eq!(claimed, expected);
    }
}

// P2.4: what is on its way while the server is paused may come when all is over.
#[tokio::test]
async fn a_register_that_comes_too_late_brings_nobody_back() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = new_session("client");
    store.register(session.clone()).await.expect("it answers");
    assert!(lives(&store, &session.id).await.expect("it answers"));
    store.register(session.clone()).await.expect("it answers");
    assert!(lives(&store, &session.id).await.expect("it answers"));
    let next = worker_of(&store, "client").await;
    for mode in [EndMode::AtExpiry, EndMode::Now] {
        store
            .end_session(&session.id, mode)
            .await
            .expect("it answers");
        let late = store.register(session.clone()).await.expect("it answers");
        assert_eq!(late.earlier, None);
        assert!(!lives(&store, &session.id).await.expect("it answers"));
        let claimed = try_place(&store, &key("a"), &session.id).await;
        assert_eq!(claimed.expect("it answers"), Claimed::CandidateGone);
    }
    assert!(lives(&store, &next).await.expect("it answers"));
}

// P2.10: a heartbeat brings some, and the next ones once these are confirmed.
#[tokio::test]
async fn very_many_messages_come_in_parts() {
    const MESSAGES: usize = 2_300;
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    let keys: Vec<_> = (0..MESSAGES).map(|n| key(&n.to_string())).collect();
    let message = |key: &PlacementKey| MessageBody {
        key: key.clone(),
        deadline: None,
    };
    let queued = store
        .queue_messages(&session, keys.iter().map(message).collect())
        .await;
    assert!(queued.expect("it answers"));
    assert!(
        store
            .queue_messages(&session, Vec::new())
            .await
            .expect("it answers")
    );
    let (mut told, mut acks) = (Vec::new(), Vec::new());
    while told.len() < MESSAGES {
        let mut beat = beat(&session);
        beat.acks = std::mem::take(&mut acks);
        match store.heartbeat(beat).await.expect("it answers") {
            HeartbeatOutcome::Renewed { messages, .. } => {
                assert!(!messages.is_empty() && messages.len() <= 1_000);
                acks = messages.iter().map(|message| message.id.clone()).collect();
                told.extend(messages.into_iter().map(|message| message.body.key));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, keys);
}

// P11
#[tokio::test]
async fn each_operation_has_a_time() {
    let probe = MetricsProbe::new();
    let _watching = probe.watch();
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = worker(&store).await;
    place(&store, &key("a"), &session).await;
    for (op, times) in [
        ("prepare", 1),
        ("register", 1),
        ("claim", 1),
        ("release", 0),
    ] {
        let taken = probe.histogram("pinboard_store_round_trip_seconds", &[("op", op)]);
        assert_eq!(taken.len(), times, "{op}");
    }
}
