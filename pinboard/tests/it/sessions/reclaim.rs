//! What a worker that registers again keeps (P2.5).

use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{EndMode, Fence, MemoryStore, RegistryStore as _, SessionId, StoreOptions};
use pinned_domain::Domain;
use serde_json::{Value, json};

use super::rig::{TTL, Worker, World, beat, heartbeat, merged, quiet_beat, room, session_of};

fn instances(previous: &str, ids: &[&str]) -> Value {
    json!({"prevSessionId": previous, "instances": {"/rooms": ids}})
}

#[tokio::test(start_paused = true)]
async fn its_own_rows_move_with_their_epochs_and_others_are_claimed_or_duplicates() {
    let world = World::new().await;
    let node = world.node();
    let (worker, other) = (Worker::new(&world, 1), Worker::new(&world, 2));
    let first = worker.register(&node).await;
    let others = other.register(&node).await;
    let epoch = world.place(&room("mine"), &first).await;
    world.place(&room("left"), &first).await;
    let foreign = world.place(&room("theirs"), &others).await;

    let again = instances(&first, &["mine", "nobodys", "theirs", "mine"]);
    let ack = worker.register_with(&node, again).await;
    let second = session_of(&ack);
    assert_eq!(ack["duplicates"], json!([{"ns": "/rooms", "id": "theirs"}]));

    let mine = world.row(&room("mine")).await.expect("a row");
    assert_eq!((mine.session.as_str(), mine.epoch), (&*second, epoch));
    let nobodys = world.row(&room("nobodys")).await.expect("a row");
    assert_eq!(nobodys.session.as_str(), second);
    let theirs = world.row(&room("theirs")).await.expect("a row");
    assert_eq!((theirs.session.as_str(), theirs.epoch), (&*others, foreign));
    // What it does not name does not live in it: free at once.
    let third = other.register(&node).await;
    world
        .store
        .claim(pinboard::store::Claim {
            key: room("left"),
            candidate: SessionId::new(third),
            expected: pinboard::store::Expected::HeldByDead {
                session: SessionId::new(first),
                epoch: world.row(&room("left")).await.expect("a row").epoch,
            },
            above: 0,
        })
        .await
        .expect("the store");
    assert_ne!(world.holder(&room("left")).await, Some(second));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_moves_is_open_to_new_ids_when_it_has_its_ack() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;
    let ack = worker
        .register_with(&node, instances(&first, &["blue"]))
        .await;
    let id = SessionId::new(session_of(&ack));
    let known = node.registry.workers.get(&id).expect("it lives");
    assert!(known.view.read().record.update.reachable);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_ack_got_lost_keeps_what_had_moved() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    let epoch = world.place(&room("blue"), &first).await;
    // It registers three times, and never sees an ack: it goes on naming the session that it had.
    for _ in 0..3 {
        let ack = worker
            .register_with(&node, instances(&first, &["blue"]))
            .await;
        assert_eq!(ack.get("duplicates"), None);
        let row = world.row(&room("blue")).await.expect("a row");
        assert_eq!(
            (row.session.to_string(), row.epoch),
            (session_of(&ack), epoch)
        );
    }
}

// P2.5, P4.6: the worker's first attempt was held up at another node, with its URL proved, and comes through after the second.
#[tokio::test(start_paused = true)]
async fn a_registration_that_comes_late_takes_nothing_from_the_worker() {
    let world = World::new().await;
    let (late, node) = (world.node(), world.node());
    let worker = Worker::new(&world, 1);
    let acked = worker.register(&node).await;
    let epoch = world.place(&room("blue"), &acked).await;
    let ack = worker.register_with(&late, json!({})).await;
    assert_eq!(ack.get("duplicates"), None);
    let row = world.row(&room("blue")).await.expect("it lives there");
    assert_eq!(
        (row.session.to_string(), row.epoch),
        (session_of(&ack), epoch)
    );

    // It hears that its session has ended, and brings its instance along.
    heartbeat(&node, beat(&acked))
        .await
        .refuses(409, "unknown or expired session");
    let ack = worker
        .register_with(&node, instances(&acked, &["blue"]))
        .await;
    assert_eq!(ack.get("duplicates"), None);
    let row = world.row(&room("blue")).await.expect("it lives there");
    assert_eq!(
        (row.session.to_string(), row.epoch),
        (session_of(&ack), epoch)
    );
}

#[tokio::test(start_paused = true)]
async fn another_process_under_the_same_client_id_waits_for_the_lease_of_the_first() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;

    // A copy of the machine: the same name, another secret, and it says that the same instance lives in it.
    let mut copy = Worker::new(&world, 2);
    copy.client_id = worker.client_id.clone();
    let ack = copy
        .register_with(&node, json!({"instances": {"/rooms": ["blue"]}}))
        .await;
    assert_eq!(ack["duplicates"], json!([{"ns": "/rooms", "id": "blue"}]));
    assert_eq!(world.holder(&room("blue")).await, Some(first.clone()));
    heartbeat(&node, beat(&first))
        .await
        .refuses(409, "unknown or expired session");

    let second = session_of(&ack);
    let take = || async {
        let row = world.row(&room("blue")).await.expect("a row");
        let claim = pinboard::store::Claim {
            key: room("blue"),
            candidate: SessionId::new(&*second),
            expected: pinboard::store::Expected::HeldByDead {
                session: row.session,
                epoch: row.epoch,
            },
            above: 0,
        };
        world.store.claim(claim).await.expect("the store")
    };
    assert!(matches!(take().await, pinboard::store::Claimed::Held(_)));
    heartbeat(&node, quiet_beat(&second)).await.ok();
    world.wait(TTL - Duration::from_secs(1)).await;
    heartbeat(&node, quiet_beat(&second)).await.ok();
    world.wait(Duration::from_secs(1)).await;
    assert!(matches!(
        take().await,
        pinboard::store::Claimed::Placed { replaced: true, .. }
    ));
}

// W4.7
#[tokio::test(start_paused = true)]
async fn a_worker_that_lost_its_session_keeps_its_instances() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    let epoch = world.place(&room("blue"), &first).await;
    world.wait(TTL * 2).await;
    heartbeat(&node, beat(&first))
        .await
        .refuses(409, "unknown or expired session");
    let ack = worker
        .register_with(&node, instances(&first, &["blue"]))
        .await;
    assert_eq!(ack.get("duplicates"), None);
    let row = world.row(&room("blue")).await.expect("a row");
    assert_eq!(
        (row.session.to_string(), row.epoch),
        (session_of(&ack), epoch)
    );
}

// P3.5, P2.10: a fence relies on its holder having been told.
#[tokio::test(start_paused = true)]
async fn orders_for_rows_that_move_are_told_again() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    for id in ["ahead", "standing", "free"] {
        world.place(&room(id), &first).await;
    }
    let fence = |starts_in| {
        Some(Fence {
            starts_in: Duration::from_secs(starts_in),
            ends_in: Duration::from_secs(starts_in + 15),
        })
    };
    for (id, starts_in) in [("ahead", 60), ("standing", 0)] {
        let fenced = world.store.fence(&room(id), fence(starts_in)).await;
        assert!(fenced.expect("the store").is_some());
    }

    let again = instances(&first, &["ahead", "free", "standing"]);
    let ack = worker.register_with(&node, again).await;
    // Its time is over: the worker ends it, and hands the row back.
    assert_eq!(
        ack["duplicates"],
        json!([{"ns": "/rooms", "id": "standing"}])
    );
    let session = session_of(&ack);
    world.wait(Duration::from_secs(10)).await;
    let ack = heartbeat(&node, quiet_beat(&session)).await.ok();
    let messages = ack["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["id"], "ahead");
    assert_eq!(messages[0]["deadline"].as_f64().map(f64::round), Some(50.0));
}

#[tokio::test(start_paused = true)]
async fn the_earlier_session_ends_also_when_it_was_ending() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;
    world.place(&room("left"), &first).await;
    let ended = world
        .store
        .end_session(&SessionId::new(&*first), EndMode::AtExpiry)
        .await;
    assert!(ended.expect("the store"));
    let ack = worker
        .register_with(&node, instances(&first, &["blue"]))
        .await;
    assert_eq!(world.holder(&room("blue")).await, Some(session_of(&ack)));
}

fn lapsed(previous: &str, ids: &[&str]) -> Value {
    merged(instances(previous, ids), json!({"lapsed": true}))
}

// P2.5: nobody can have taken what its row still names.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_lease_had_passed_keeps_what_rows_name_as_its_own_alone() {
    let world = World::new().await;
    let node = world.node();
    let (worker, other) = (Worker::new(&world, 1), Worker::new(&world, 2));
    let first = worker.register(&node).await;
    let epoch = world.place(&room("mine"), &first).await;
    world.wait(TTL * 2).await;
    let others = other.register(&node).await;
    let foreign = world.place(&room("theirs"), &others).await;

    let brought = lapsed(&first, &["mine", "nobodys", "theirs"]);
    let ack = worker.register_with(&node, brought).await;
    assert_eq!(
        ack["duplicates"],
        json!([{"ns": "/rooms", "id": "nobodys"}, {"ns": "/rooms", "id": "theirs"}])
    );
    let mine = world.row(&room("mine")).await.expect("a row");
    assert_eq!(
        (mine.session.to_string(), mine.epoch),
        (session_of(&ack), epoch)
    );
    assert_eq!(world.row(&room("nobodys")).await, None);
    let theirs = world.row(&room("theirs")).await.expect("a row");
    assert_eq!(
        (theirs.session.to_string(), theirs.epoch),
        (others, foreign)
    );
}

// P12.1, P4.4, P4.6: the store is wiped after an id has moved on from a worker that was away.
#[tokio::test(start_paused = true)]
async fn after_a_wipe_the_worker_whose_lease_runs_gets_its_id_whoever_registers_first() {
    for lapsed_first in [true, false] {
        let world = World::cold(TTL).await;
        let node = world.node();
        let (away, holder) = (Worker::new(&world, 1), Worker::new(&world, 2));
        let comes_back = async || {
            let brought = lapsed("0".repeat(32).as_str(), &["blue"]);
            let ack = away.register_with(&node, brought).await;
            assert_eq!(ack["duplicates"], json!([{"ns": "/rooms", "id": "blue"}]));
        };
        if lapsed_first {
            comes_back().await;
            assert_eq!(world.row(&room("blue")).await, None);
        }
        let brought = instances("1".repeat(32).as_str(), &["blue"]);
        let ack = holder.register_with(&node, brought).await;
        assert_eq!(ack.get("duplicates"), None);
        if !lapsed_first {
            comes_back().await;
        }
        assert_eq!(world.holder(&room("blue")).await, Some(session_of(&ack)));
    }
}

// P12.1, P4.4: a row of before the store lost its latest writes may be of before the id moved on.
#[tokio::test(start_paused = true)]
async fn a_row_that_may_be_out_of_date_leaves_nothing_with_a_worker_whose_lease_had_passed() {
    let domain = Domain::real_seeded(7);
    let options = StoreOptions {
        lease_ttl: TTL,
        quarantine: TTL,
        shards: 4,
    };
    let store = Arc::new(MemoryStore::new(options, domain.clone()));
    store.prepare().await.expect("a store");
    let world = World::over(Arc::clone(&store) as _, domain);
    world.wait(TTL).await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let first = worker.register(&node).await;
    world.place(&room("blue"), &first).await;
    store.restart_from_copy(&store.copy());

    let ack = worker.register_with(&node, lapsed(&first, &["blue"])).await;
    assert_eq!(ack["duplicates"], json!([{"ns": "/rooms", "id": "blue"}]));
    assert_eq!(world.row(&room("blue")).await, None);
}
