//! Claims that are made at the same time, and go to the server together.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::poll;
use pinboard::store::{
    Claimed, EndMode, Expected, PlacementKey, RedisStore, RegistryStore, Release, SessionId,
    StoreError, StoreOptions,
};
use pinned_testing::RedisServer;

use super::support::{
    STEADY, claim, holder, info, key, lives, place, ready, try_place, until, worker,
};

const ONE_SHARD: StoreOptions = StoreOptions {
    shards: 1,
    ..STEADY
};

/// How often scripts were called.
async fn scripts_called(server: &RedisServer) -> u64 {
    let calls = info(server, "commandstats", "cmdstat_evalsha").await;
    let calls = calls
        .strip_prefix("calls=")
        .and_then(|rest| rest.split(',').next());
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
}

async fn held_by(store: &RedisStore, session: &SessionId) -> Vec<Arc<str>> {
    let (mut held, mut cursor) = (Vec::new(), 0);
    loop {
        let (some, next) = store
            .held_by(session, PlacementKey::SINGLE, "/ns", cursor)
            .await
            .expect("it answers");
        held.extend(some);
        if next == 0 {
            held.sort();
            held.dedup();
            return held;
        }
        cursor = next;
    }
}

// P4.2
#[tokio::test]
async fn ids_that_are_placed_at_once_share_a_call_and_are_each_placed() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let sessions = [worker(&store).await, worker(&store).await];
    let before = scripts_called(&server).await;
    let keys: Vec<_> = (0..300).map(|n| key(&format!("id {n}"))).collect();
    let claims = keys
        .iter()
        .enumerate()
        .map(|(n, key)| try_place(&store, key, &sessions[n % 3 / 2]));
    let claimed = join_all(claims).await;
    assert!(scripts_called(&server).await - before <= 6);
    for (n, (key, claimed)) in keys.iter().zip(claimed).enumerate() {
        let Ok(Claimed::Placed { epoch, replaced }) = claimed else {
            panic!("{key:?}: {claimed:?}");
        };
        assert!(!replaced);
        let expected = (sessions[n % 3 / 2].clone(), epoch);
        assert_eq!(holder(&store, key).await, Some(expected));
    }
    assert_eq!(held_by(&store, &sessions[0]).await.len(), 200);
    assert_eq!(held_by(&store, &sessions[1]).await.len(), 100);
    let counts = store.row_counts().await.expect("it answers");
    let counts: Vec<_> = counts.iter().map(|(_, ns, rows)| (&**ns, *rows)).collect();
    assert_eq!(counts, [("/ns", 300)]);
}

// P4.2: at most one holder, whoever asks at the same time.
#[tokio::test]
async fn of_several_claims_on_one_id_that_go_together_one_wins() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let sessions = [worker(&store).await, worker(&store).await];
    for round in 0..20 {
        let key = key(&round.to_string());
        let claims = (0..10).map(|n| try_place(&store, &key, &sessions[n % 2]));
        let claimed = join_all(claims).await;
        let row = holder(&store, &key).await.expect("somebody holds it");
        let mut winners = 0;
        for (n, claimed) in claimed.into_iter().enumerate() {
            let found = match claimed.expect("it answers") {
                Claimed::Placed { epoch, .. } => {
                    winners += 1;
                    (sessions[n % 2].clone(), epoch)
                }
                Claimed::Held(row) => (row.session, row.epoch),
                other => panic!("{other:?}"),
            };
            assert_eq!(found, row);
        }
        assert_eq!(winners, 1);
    }
    assert_eq!(
        held_by(&store, &sessions[0]).await.len() + held_by(&store, &sessions[1]).await.len(),
        20
    );
}

// P4.2, P4.3, P4.6: what is out of the ordinary keeps its own answer among those that are not.
#[tokio::test]
async fn claims_that_go_together_come_to_what_each_would_alone() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let (me, other, dead) = (
        worker(&store).await,
        worker(&store).await,
        worker(&store).await,
    );
    let held = place(&store, &key("held"), &other).await;
    let released = place(&store, &key("released"), &other).await;
    let release = Release {
        session: other.clone(),
        key: key("released"),
        epoch: Some(released),
    };
    assert_eq!(store.release(&[release]).await.expect("it answers"), 1);
    let ended = store.end_session(&dead, EndMode::Now).await;
    assert!(ended.expect("it answers"));

    let far = u64::from(u32::MAX) << 20;
    let mut asked = vec![
        claim(&key("held"), &me, Expected::Vacant),
        claim(&key("released"), &me, Expected::Vacant),
        claim(&key("for the dead"), &dead, Expected::Vacant),
        claim(&key("high"), &me, Expected::Vacant),
        claim(&key("new"), &me, Expected::Vacant),
        claim(&key("another"), &other, Expected::Vacant),
    ];
    asked[3].above = far;
    let claimed: Vec<_> = join_all(asked.into_iter().map(|claim| store.claim(claim)))
        .await
        .into_iter()
        .map(|claimed| claimed.expect("it answers"))
        .collect();
    assert!(matches!(&claimed[0], Claimed::Held(row) if row.session == other && row.epoch == held));
    assert_eq!(claimed[1], Claimed::Preferred(other.clone()));
    assert_eq!(claimed[2], Claimed::CandidateGone);
    assert!(matches!(claimed[3], Claimed::Placed { epoch, .. } if epoch == far + 1));
    assert!(matches!(claimed[4], Claimed::Placed { epoch, .. } if epoch < far));
    assert!(matches!(claimed[5], Claimed::Placed { .. }));
    let of_me: Vec<_> = held_by(&store, &me).await;
    assert_eq!(of_me, [Arc::from("high"), Arc::from("new")]);
}

// P4.2
#[tokio::test]
async fn who_leaves_before_the_claim_is_on_its_way_is_given_nothing() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let session = worker(&store).await;
    let (left, stays) = (key("left"), key("stays"));
    {
        let mut leaving = std::pin::pin!(try_place(&store, &left, &session));
        assert!(poll!(&mut leaving).is_pending());
    }
    place(&store, &stays, &session).await;
    assert_eq!(holder(&store, &left).await, None);
}

// Claims of other threads go with it, and their clients are still there when a thread has served its own.
#[tokio::test]
async fn who_went_with_a_claim_whose_thread_has_ended_is_placed_all_the_same() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let session = worker(&store).await;
    let (first, next) = (key("first"), key("next"));
    let ended = {
        let (store, session) = (Arc::clone(&store), session.clone());
        std::thread::spawn(move || {
            let lane = tokio::runtime::Builder::new_current_thread().build();
            let lane = lane.expect("a runtime");
            lane.block_on(async {
                let mut carrying = std::pin::pin!(try_place(&store, &first, &session));
                assert!(poll!(&mut carrying).is_pending());
            });
            lane
        })
    };
    let lane = ended.join().expect("no panic");
    let mut waiting = std::pin::pin!(try_place(&store, &next, &session));
    assert!(poll!(&mut waiting).is_pending());
    lane.shutdown_background();
    let claimed = waiting.await.expect("it is placed");
    assert!(matches!(claimed, Claimed::Placed { .. }), "{claimed:?}");
}

#[tokio::test]
async fn what_fails_fails_for_all_that_went_together_and_the_next_go_on() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let session = worker(&store).await;
    let keys: Vec<_> = (0..100).map(|n| key(&n.to_string())).collect();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let claims = keys.iter().map(|key| try_place(&store, key, &session));
    let mut reasons = BTreeMap::<_, u32>::new();
    for claimed in join_all(claims).await {
        let Err(StoreError::Unavailable(reason)) = claimed else {
            panic!("{claimed:?}");
        };
        *reasons.entry(reason.to_string()).or_default() += 1;
    }
    let [(reason, 100)] = &reasons.into_iter().collect::<Vec<_>>()[..] else {
        panic!("there is one reason for all");
    };
    assert!(reason.contains("OOM"), "{reason}");

    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    for key in &keys {
        place(&store, key, &session).await;
    }
}

// P4.4: the first claim after a loss begins the new generation, also when it goes with others.
#[tokio::test]
async fn claims_that_go_together_notice_a_cold_start() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), ONE_SHARD).await;
    let session = worker(&store).await;
    server.flush().await;
    let keys: Vec<_> = (0..10).map(|n| key(&n.to_string())).collect();
    let claims = keys.iter().map(|key| try_place(&store, key, &session));
    for claimed in join_all(claims).await {
        let claimed = claimed.expect("it answers");
        assert!(
            matches!(
                claimed,
                Claimed::Quarantined { .. } | Claimed::CandidateGone
            ),
            "{claimed:?}"
        );
    }
    assert!(!lives(&store, &session).await.expect("it answers"));
    let next = worker(&store).await;
    until("the end of the quarantine", || async {
        matches!(
            try_place(&store, &keys[0], &next).await,
            Ok(Claimed::Placed { .. })
        )
    })
    .await;
}
