//! What happens to the server (P12).

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{
    Claimed, Expected, Invalidation, PlacementKey, Reclaimed, RedisStore, RegistryStore, SessionId,
    StoreError, StoreOptions,
};
use pinned_domain::Domain;
use pinned_testing::{RedisOptions, RedisPersistence, RedisServer};

use super::support::{
    STEADY, claim, holder, key, lives, open, pause, place, ready, try_place, until, worker,
    worker_of,
};

/// A quarantine that is long enough to be seen.
const GUARDED: StoreOptions = StoreOptions {
    quarantine: Duration::from_secs(3),
    ..STEADY
};

/// Waits until the store answers again.
async fn back(store: &RedisStore) {
    until("the store", || async { store.ping().await.is_ok() }).await;
}

/// Claims what `holder` held, as a node does that takes it for dead.
async fn take(
    store: &RedisStore,
    key: &PlacementKey,
    from: (&SessionId, u64),
    to: &SessionId,
) -> Claimed {
    let expected = Expected::HeldByDead {
        session: from.0.clone(),
        epoch: from.1,
    };
    let claimed = store.claim(claim(key, to, expected)).await;
    claimed.expect("it answers")
}

// P12.1, P4.4
#[tokio::test]
async fn a_server_that_lost_everything_is_a_cold_start() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), GUARDED).await;
    let before = worker_of(&store, "client").await;
    let (kept, free) = (key("kept"), key("free"));
    let epoch = place(&store, &kept, &before).await;
    place(&store, &free, &before).await;

    server.kill().await;
    let failed = store.ping().await.expect_err("nobody is there");
    assert!(failed.is_transient(), "{failed:?}");
    server.restart().await;
    back(&store).await;

    assert!(!lives(&store, &before).await.expect("it answers"));
    assert_eq!(holder(&store, &kept).await, None);
    let after = worker_of(&store, "client").await;
    let refused = try_place(&store, &free, &after).await.expect("it answers");
    assert!(matches!(refused, Claimed::Quarantined { ends_in } if ends_in <= GUARDED.quarantine));
    let reclaimed = store
        .reclaim(&after, from_ref(&before), from_ref(&kept))
        .await;
    let reclaimed = reclaimed.expect("it answers");
    assert!(
        matches!(reclaimed[..], [Reclaimed::Claimed { epoch: fresh }] if fresh > epoch),
        "{reclaimed:?} after {epoch}"
    );
    until("the end of the quarantine", || async {
        matches!(
            try_place(&store, &free, &after).await,
            Ok(Claimed::Placed { .. })
        )
    })
    .await;
}

// P12.1, P4.4, P4.6
#[tokio::test]
async fn a_server_that_kept_everything_is_a_cold_start_too() {
    let options = RedisOptions {
        persistence: RedisPersistence::Aof,
    };
    let server = RedisServer::start_with(options).await;
    let store = ready(&server.url(), GUARDED).await;
    let (before, other) = (worker_of(&store, "client").await, worker(&store).await);
    let [own, theirs, unclaimed] = ["own", "theirs", "unclaimed"].map(key);
    let epoch = place(&store, &own, &before).await;
    let of_theirs = place(&store, &theirs, &other).await;
    let of_unclaimed = place(&store, &unclaimed, &before).await;

    server.kill().await;
    server.restart().await;
    back(&store).await;

    // Its latest writes may be lost for all that anybody knows: the rows stay, and the sessions are dead.
    assert!(!lives(&store, &before).await.expect("it answers"));
    assert_eq!(holder(&store, &own).await, Some((before.clone(), epoch)));
    let after = worker_of(&store, "client").await;
    assert_eq!(
        store
            .client_of(&before)
            .await
            .expect("it answers")
            .as_deref(),
        Some("client"),
        "the worker is told from others by its earlier session"
    );
    for taken in [
        take(&store, &theirs, (&other, of_theirs), &after).await,
        take(&store, &own, (&before, epoch), &after).await,
    ] {
        assert!(matches!(taken, Claimed::Quarantined { .. }), "{taken:?}");
    }
    // The worker of the other row may be alive, and has not been heard yet.
    let keys = [own.clone(), theirs.clone()];
    let reclaimed = store.reclaim(&after, from_ref(&before), &keys).await;
    let reclaimed = reclaimed.expect("it answers");
    assert!(
        matches!(reclaimed[..], [Reclaimed::Claimed { epoch: fresh }, Reclaimed::Duplicate] if fresh > epoch),
        "{reclaimed:?} after {epoch}"
    );
    // Nor are rows swept that somebody may come for.
    while store.sweep().await.expect("it answers") {}
    assert_eq!(
        holder(&store, &theirs).await,
        Some((other.clone(), of_theirs))
    );

    until("the end of the quarantine", || async {
        store.quarantine().await.expect("it answers").is_none()
    })
    .await;
    let taken = take(&store, &theirs, (&other, of_theirs), &after).await;
    assert!(
        matches!(taken, Claimed::Placed { epoch, replaced: true } if epoch > of_theirs),
        "{taken:?}"
    );
    while store.sweep().await.expect("it answers") {}
    assert_eq!(holder(&store, &unclaimed).await, None);
    let claimed = try_place(&store, &unclaimed, &after)
        .await
        .expect("it answers");
    assert!(
        matches!(claimed, Claimed::Placed { epoch, replaced: false } if epoch > of_unclaimed),
        "{claimed:?}"
    );
}

// P12.1, P4.3, P4.4, P4.6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_while_claims_run_gives_no_epoch_twice() {
    const IDS: usize = 20;
    let server = RedisServer::start().await;
    let domain = Domain::real();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(ready(&server.url(), GUARDED).await);
    }
    let start = domain.monotonic();
    let stop = pinned_domain::Event::new();
    // Each node places ids on a worker of its own, hands them back, and registers the worker again when it is unknown.
    let tasks: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| {
            let (node, domain, stop) = (Arc::clone(node), domain.clone(), stop.clone());
            domain.clone().spawn(async move {
                let client = format!("client-{n}");
                let mut session = worker_of(&node, &client).await;
                let mut placed = Vec::new();
                for round in 0.. {
                    if stop.is_set() {
                        break;
                    }
                    let id = round % IDS;
                    let asked = domain.monotonic();
                    match try_place(&node, &key(&id.to_string()), &session).await {
                        Ok(Claimed::Placed { epoch, .. }) => {
                            placed.push((asked, domain.monotonic(), id, epoch));
                            let release = pinboard::store::Release {
                                session: session.clone(),
                                key: key(&id.to_string()),
                                epoch: Some(epoch),
                            };
                            // Now and then it is kept, so that others meet it.
                            if round % 3 > 0 {
                                let _ = node.release(&[release]).await;
                            }
                        }
                        Ok(Claimed::CandidateGone) => session = worker_of(&node, &client).await,
                        Ok(_) => {}
                        Err(error) => panic!("the server was there all the time: {error:?}"),
                    }
                }
                placed
            })
        })
        .collect();
    pause(Duration::from_millis(700)).await;
    let before = domain.monotonic();
    server.flush().await;
    let flushed = domain.monotonic();
    until("the end of the quarantine", || async {
        nodes[0].quarantine().await.expect("it answers").is_none()
    })
    .await;
    pause(Duration::from_millis(700)).await;
    stop.set();
    let mut placed = Vec::new();
    for task in tasks {
        placed.extend(task.await.expect("no task fails"));
    }

    placed.sort_by_key(|(_, told, ..)| *told);
    let (mut first, mut second) = (0, 0);
    for (asked, told, ..) in &placed {
        first += usize::from(*told <= before);
        second += usize::from(*asked > flushed);
        let meanwhile =
            *asked > flushed && *told < flushed + GUARDED.quarantine - (flushed - before);
        assert!(
            !meanwhile,
            "placed {:?} after the start, in the quarantine",
            *told - start
        );
    }
    assert!(first > 0 && second > 0, "{first} before, {second} after");
    for id in 0..IDS {
        let mut epochs: Vec<_> = placed
            .iter()
            .filter(|p| p.2 == id)
            .map(|p| (p.3, p.0, p.1))
            .collect();
        epochs.sort_unstable();
        for pair in epochs.windows(2) {
            assert!(
                pair[0].0 < pair[1].0,
                "id {id} had epoch {} twice",
                pair[0].0
            );
            assert!(pair[0].1 < pair[1].2, "the epochs of id {id} went down");
        }
    }
}

// P12.3, P12.4
#[tokio::test]
async fn a_server_that_is_paused_holds_up_nobody_for_long() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let domain = Domain::real();
    let mut told = store.invalidations().expect("it can tell");
    let session = worker(&store).await;
    let epoch = place(&store, &key("a"), &session).await;
    while told.try_recv().is_ok() {}

    server.pause().await;
    let asked = domain.monotonic();
    let b = key("b");
    let outcomes = tokio::join!(
        try_place(&store, &b, &session),
        store.sessions_since(0),
        store.heartbeat(super::support::beat(&session)),
    );
    for error in [outcomes.0.err(), outcomes.1.err(), outcomes.2.err()] {
        let error = error.expect("nobody answers");
        assert!(error.is_transient(), "{error:?}");
    }
    let waited = domain.monotonic() - asked;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    // It is known to be away soon; then nobody waits.
    until("the end of waiting", || async {
        let asked = domain.monotonic();
        let refused = store.row(&key("a")).await;
        refused.is_err() && domain.monotonic() - asked < Duration::from_millis(400)
    })
    .await;
    assert_eq!(told.recv().await, Some(Invalidation::Everything));

    server.resume().await;
    back(&store).await;
    // It is the same server, and has lost nothing.
    assert!(lives(&store, &session).await.expect("it answers"));
    assert_eq!(
        holder(&store, &key("a")).await,
        Some((session.clone(), epoch))
    );
    let claimed = try_place(&store, &key("c"), &session).await;
    assert!(matches!(claimed, Ok(Claimed::Placed { .. })), "{claimed:?}");
}

// P12.4
#[tokio::test]
async fn a_server_that_comes_late_is_found() {
    let server = RedisServer::start().await;
    server.kill().await;
    let store = open(&server.url(), STEADY);
    let domain = Domain::real();
    let start = domain.monotonic();
    let refused = store.prepare().await.expect_err("nobody is there");
    assert!(refused.is_transient(), "{refused:?}");
    let waited = domain.monotonic() - start;
    assert!(
        waited >= Duration::from_secs(4),
        "a start is worth waiting for: {waited:?}"
    );
    assert!(waited < Duration::from_secs(9), "{waited:?}");
    let StoreError::Unavailable(why) = refused else {
        panic!("it is transient");
    };
    let address = format!("127.0.0.1:{}", server.port());
    assert!(why.to_string().contains(&address), "{why}");

    server.restart().await;
    back(&store).await;
    store.prepare().await.expect("it is there now");
}

#[tokio::test]
async fn a_store_that_is_dropped_leaves_its_connections() {
    let server = RedisServer::start().await;
    let others = || async {
        let clients = server.cli(&["CLIENT", "LIST"]).await;
        clients
            .lines()
            .filter(|line| line.contains("name=pinboard"))
            .count()
    };
    let store = ready(&server.url(), STEADY).await;
    assert_eq!(others().await, 1);
    drop(store);
    until("the end of the connection", || async {
        others().await == 0
    })
    .await;
}
