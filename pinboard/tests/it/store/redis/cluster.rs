//! A cluster whose nodes come and go, and whose slots move.

use std::collections::BTreeSet;
use std::sync::Arc;

use pinboard::store::{
    Claimed, Invalidation, PlacementKey, Reclaimed, RedisStore, RegistryStore, SessionId,
    StoreOptions,
};
use pinned_domain::Domain;
use pinned_testing::{RedisCluster, RedisServer};

use super::support::{STEADY, holder, info, key, lives, place, ready, try_place, until, worker_of};

const OPTIONS: StoreOptions = StoreOptions {
    shards: 16,
    ..STEADY
};

/// The slot of a key, and the index of the node that serves it.
async fn owner(cluster: &RedisCluster, tag: &str) -> (u16, usize) {
    let slot = cluster.nodes()[0].cli(&["CLUSTER", "KEYSLOT", tag]).await;
    let slot: u16 = slot.parse().expect("a slot");
    (slot, usize::from(slot / 5_461).min(2))
}

/// Ids whose shards lie on each of the nodes.
async fn ids_of_nodes(cluster: &RedisCluster) -> [Vec<PlacementKey>; 3] {
    let mut ids: [Vec<PlacementKey>; 3] = Default::default();
    let store = ready(&cluster.url(), OPTIONS).await;
    let session = worker_of(&store, "finder").await;
    for n in 0..60 {
        place(&store, &key(&format!("id-{n}")), &session).await;
    }
    for (node, ids) in cluster.nodes().iter().zip(&mut ids) {
        let keys = node.cli(&["KEYS", "pinboard:{s*}:row:*"]).await;
        ids.extend(keys.lines().filter_map(|row| {
            let (_, id) = row.rsplit_once(':')?;
            Some(key(id))
        }));
    }
    let found: BTreeSet<_> = ids.iter().flatten().collect();
    assert_eq!(found.len(), 60);
    let _ = store
        .end_session(&session, pinboard::store::EndMode::Now)
        .await;
    while store.sweep().await.expect("it answers") {}
    ids
}

/// A worker that lives, and places `keys`; registering it as often as the cluster needs.
async fn placed_all(store: &RedisStore, client: &str, keys: &[&PlacementKey]) -> SessionId {
    let domain = Domain::real();
    let start = domain.monotonic();
    'worker: loop {
        let waited = domain.monotonic() - start;
        assert!(
            waited < super::support::SOON,
            "the cluster does not come back"
        );
        domain.sleep(std::time::Duration::from_millis(50)).await;
        let session = super::support::new_session(client);
        let id = session.id.clone();
        if store.register(session).await.is_err() {
            continue;
        }
        for key in keys {
            match try_place(store, key, &id).await {
                Ok(Claimed::Placed { .. }) => {}
                Ok(Claimed::Held(row)) if row.session == id => {}
                _ => continue 'worker,
            }
        }
        return id;
    }
}

// P12.1, P4.4
#[tokio::test]
async fn a_node_that_was_killed_is_a_cold_start_of_its_shards() {
    let cluster = RedisCluster::start().await;
    let ids = ids_of_nodes(&cluster).await;
    let store = ready(&cluster.url(), OPTIONS).await;
    let mut told = store.invalidations().expect("it can tell");
    let session = worker_of(&store, "client").await;
    let mut epochs = Vec::new();
    for ids in &ids {
        epochs.push(place(&store, &ids[0], &session).await);
    }
    let (_, fleet) = owner(&cluster, "{fleet}").await;
    let killed = (fleet + 1) % 3;
    let (kept, lost) = (&ids[fleet][0], &ids[killed][0]);

    cluster.kill_node(killed).await;
    until("the loss of the node", || async {
        store.row(lost).await.is_err()
    })
    .await;
    until("that everything is forgotten", || {
        let heard = told.try_recv();
        async move { heard == Ok(Invalidation::Everything) }
    })
    .await;
    let refused = lives(&store, &session).await;
    assert!(
        refused.as_ref().is_err_and(|e| e.is_transient()),
        "{refused:?}"
    );
    cluster.restart_node(killed).await;

    until("the cluster", || async { store.ping().await.is_ok() }).await;
    until("that no shard knows too little", || async {
        lives(&store, &session).await.is_ok_and(|lives| !lives)
    })
    .await;
    assert_eq!(holder(&store, lost).await, None);
    assert_eq!(
        holder(&store, kept).await,
        Some((session.clone(), epochs[fleet]))
    );
    let after = placed_all(&store, "client", &[lost]).await;
    let (holder, epoch) = holder(&store, lost).await.expect("it was placed");
    assert_eq!(holder, after);
    assert!(epoch > epochs[killed]);
}

// The slot of the fleet alone is lost: workers are still told from others.
#[tokio::test]
async fn a_fleet_that_is_lost_is_made_up_from_the_shards() {
    let cluster = RedisCluster::start().await;
    let ids = ids_of_nodes(&cluster).await;
    let store = ready(&cluster.url(), OPTIONS).await;
    let (_, fleet) = owner(&cluster, "{fleet}").await;
    let kept = &ids[(fleet + 1) % 3][0];
    let session = worker_of(&store, "client").await;
    let epoch = place(&store, kept, &session).await;

    cluster.kill_node(fleet).await;
    cluster.restart_node(fleet).await;
    until("the cluster", || async { store.ping().await.is_ok() }).await;
    assert!(!lives(&store, &session).await.expect("it answers"));
    let client = store.client_of(&session).await.expect("it answers");
    assert_eq!(client.as_deref(), Some("client"));
    let after = worker_of(&store, "client").await;
    let moved = store
        .reclaim(
            &after,
            std::slice::from_ref(&session),
            std::slice::from_ref(kept),
        )
        .await
        .expect("it answers");
    assert_eq!(moved, [Reclaimed::Moved { epoch }]);
}

/// Gives a slot to another node, with its keys.
async fn migrate(slot: u16, from: &RedisServer, to: &RedisServer, all: &[RedisServer]) {
    let slot = slot.to_string();
    let id = |server: &RedisServer| {
        let port = server.port();
        async move {
            let all = all.iter().find(|s| s.port() == port).expect("one of them");
            all.cli(&["CLUSTER", "MYID"]).await
        }
    };
    let (of_from, of_to) = (id(from).await, id(to).await);
    to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &of_from])
        .await;
    from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &of_to])
        .await;
    let keys = from
        .cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "10000"])
        .await;
    let port = to.port().to_string();
    for key in keys.lines() {
        from.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"])
            .await;
    }
    for server in all {
        server
            .cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &of_to])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_is_followed() {
    let cluster = RedisCluster::start().await;
    let ids = ids_of_nodes(&cluster).await;
    let store = ready(&cluster.url(), OPTIONS).await;
    let mut told = store.invalidations().expect("it can tell");
    let session = worker_of(&store, "client").await;
    let key = &ids[0][0];
    let epoch = place(&store, key, &session).await;
    while told.try_recv().is_ok() {}

    let row = cluster.nodes()[0]
        .cli(&["KEYS", &format!("pinboard:*:row:*:{}", key.id)])
        .await;
    let (slot, from) = owner(&cluster, &row).await;
    assert_eq!(from, 0);
    let nodes = cluster.nodes();
    migrate(slot, &nodes[0], &nodes[1], nodes).await;

    // The first that asks there is sent on.
    let held = holder(&store, key).await;
    assert_eq!(held, Some((session.clone(), epoch)));
    until("that everything is forgotten", || {
        let heard = told.try_recv();
        async move { heard == Ok(Invalidation::Everything) }
    })
    .await;
    // It is another server, which may lack what was last written: the sessions have to begin anew.
    until("the cold start", || async {
        lives(&store, &session).await.is_ok_and(|lives| !lives)
    })
    .await;
    let after = worker_of(&store, "client").await;
    let moved = store
        .reclaim(
            &after,
            std::slice::from_ref(&session),
            std::slice::from_ref(key),
        )
        .await
        .expect("it answers");
    assert!(
        matches!(moved[..], [Reclaimed::Claimed { epoch: fresh }] if fresh > epoch),
        "{moved:?} after {epoch}"
    );
    let other = ready(&cluster.url(), OPTIONS).await;
    let held = holder(&other, key).await.map(|(session, _)| session);
    assert_eq!(held, Some(after));
}

/// Makes the third node a replica of the first, and gives its slots to the second.
async fn third_follows_first(cluster: &RedisCluster) {
    let nodes = cluster.nodes();
    for node in nodes {
        node.cli(&["CLUSTER", "DELSLOTSRANGE", "10923", "16383"])
            .await;
    }
    nodes[1]
        .cli(&["CLUSTER", "ADDSLOTSRANGE", "10923", "16383"])
        .await;
    let first = nodes[0].cli(&["CLUSTER", "MYID"]).await;
    nodes[2].cli(&["CLUSTER", "REPLICATE", &first]).await;
    until("the replica", || async {
        let link = info(&nodes[2], "replication", "master_link_status").await;
        let mut well = true;
        for node in nodes {
            let info = node.cli(&["CLUSTER", "INFO"]).await;
            well &= info.starts_with("cluster_state:ok");
        }
        link == "up" && well
    })
    .await;
}

/// How far a node has written, or has read what its primary wrote.
async fn offset(node: &RedisServer, field: &str) -> u64 {
    let offset = info(node, "replication", field).await;
    offset.parse().expect("a number")
}

// P4.4: what a replica did not get before it took over is lost, for all that anybody knows.
#[tokio::test]
async fn a_failover_is_a_cold_start_of_what_it_concerns() {
    let cluster = RedisCluster::start().await;
    third_follows_first(&cluster).await;
    let ids = ids_of_nodes(&cluster).await;
    let (moved, kept) = (&ids[0][0], &ids[1][0]);
    let store = ready(&cluster.url(), OPTIONS).await;
    let session = worker_of(&store, "client").await;
    let epoch = place(&store, moved, &session).await;
    let of_kept = place(&store, kept, &session).await;
    let nodes = cluster.nodes();
    // `WAIT` is about the writes of its own connection.
    let written = offset(&nodes[0], "master_repl_offset").await;
    until("the replica", || async {
        offset(&nodes[2], "slave_repl_offset").await >= written
    })
    .await;

    nodes[0].kill().await;
    nodes[2].cli(&["CLUSTER", "FAILOVER", "TAKEOVER"]).await;
    until("the new primary", || async {
        store.row(moved).await.is_ok() && store.ping().await.is_ok()
    })
    .await;
    assert_eq!(holder(&store, moved).await, Some((session.clone(), epoch)));
    assert_eq!(holder(&store, kept).await, Some((session.clone(), of_kept)));
    assert!(!lives(&store, &session).await.expect("it answers"));
    let after = worker_of(&store, "client").await;
    let keys = [moved.clone(), kept.clone()];
    let reclaimed = store
        .reclaim(&after, std::slice::from_ref(&session), &keys)
        .await
        .expect("it answers");
    assert!(
        matches!(
            reclaimed[..],
            [Reclaimed::Claimed { epoch: fresh }, Reclaimed::Moved { epoch: same }]
                if fresh > epoch && same == of_kept
        ),
        "{reclaimed:?} after {epoch} and {of_kept}"
    );
    // The first comes back as a replica; nobody is misled by it.
    cluster.restart_node(0).await;
    until("that all is well", || async {
        lives(&store, &after).await.is_ok_and(|lives| lives)
    })
    .await;
}

// Any seed will do, and so will one that is there among others that are not.
#[tokio::test]
async fn one_seed_is_enough() {
    let cluster = RedisCluster::shared().await;
    let port = cluster.nodes()[2].port();
    let gone = RedisServer::start().await;
    gone.kill().await;
    let url = format!("redis+cluster://127.0.0.1:{},localhost:{port}", gone.port());
    let store = ready(
        &url,
        StoreOptions {
            shards: 7,
            ..STEADY
        },
    )
    .await;
    let session = worker_of(&store, &Domain::real().token_hex(8)).await;
    assert!(lives(&store, &session).await.expect("it answers"));
    assert!(store.describe().contains("Cluster"), "{}", store.describe());
}

// A whole cluster that goes away takes nothing with it but itself.
#[tokio::test]
async fn a_cluster_that_is_gone_is_found_again() {
    let cluster = RedisCluster::start().await;
    let store: Arc<RedisStore> = ready(&cluster.url(), OPTIONS).await;
    let session = worker_of(&store, "client").await;
    for n in 0..3 {
        cluster.kill_node(n).await;
    }
    let domain = Domain::real();
    for _ in 0..5 {
        let asked = domain.monotonic();
        let refused = lives(&store, &session).await;
        assert!(
            refused.as_ref().is_err_and(|e| e.is_transient()),
            "{refused:?}"
        );
        let waited = domain.monotonic() - asked;
        assert!(waited < std::time::Duration::from_secs(5), "{waited:?}");
    }
    for n in 0..3 {
        cluster.restart_node(n).await;
    }
    until("the cluster", || async { store.ping().await.is_ok() }).await;
    placed_all(&store, "client", &[&key("a"), &key("b"), &key("c")]).await;
}
