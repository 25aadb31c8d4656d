//! Calls that meet, on real threads.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::json;

use super::rig::{Worker, World, heartbeat, quiet_beat, room, session_of};

/// A world whose clock runs, and whose store is past its quarantine.
async fn running() -> World {
    World::cold(std::time::Duration::ZERO).await
}

// P2.4, P2.5, P4.6: a worker whose first tries hang sends more of them, to any node.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn registrations_of_one_worker_that_meet_leave_it_one_session_with_all_its_ids() {
    const IDS: usize = 50;
    let world = running().await;
    let nodes = [world.node(), world.node()];
    let worker = Worker::new(&world, 1);
    let ids: Vec<_> = (0..IDS).map(|n| format!("room-{n}")).collect();
    let mut previous = worker.register(&nodes[0]).await;
    for id in &ids {
        world.place(&room(id), &previous).await;
    }
    for _ in 0..20 {
        let again = json!({"prevSessionId": previous, "instances": {"/rooms": ids}});
        let mut tries = Vec::new();
        for n in 0..6 {
            let (worker, node, again) = (worker.clone(), nodes[n % 2].clone(), again.clone());
            tries.push(
                world
                    .domain
                    .spawn(async move { worker.try_register(&node, again).await }),
            );
        }
        let mut acked = Vec::new();
        for answer in tries {
            let answer = answer.await.expect("it ends");
            match answer.status {
                StatusCode::OK => {
                    // Nothing that lives in the worker is ever said to live elsewhere.
                    let ack = answer.ok();
                    assert_eq!(ack.get("duplicates"), None);
                    acked.push(session_of(&ack));
                }
                status => assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text),
            }
        }
        let mut living = BTreeSet::new();
        for session in &acked {
            if heartbeat(&nodes[0], quiet_beat(session)).await.status == StatusCode::OK {
                living.insert(session.clone());
            }
        }
        assert_eq!(living.len(), 1, "{acked:?}");
        let living = living.pop_first().expect("one");
        for id in &ids {
            assert_eq!(
                world.holder(&room(id)).await.as_ref(),
                Some(&living),
                "{id}"
            );
        }
        previous = living;
    }
}

// P3.5: wherever the rows go meanwhile, each is fenced and its holder told, or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wind_down_of_a_namespace_meets_registrations() {
    let world = running().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let ids: Vec<_> = (0..200).map(|n| format!("room-{n}")).collect();
    let mut previous = worker.register(&node).await;
    for id in &ids {
        world.place(&room(id), &previous).await;
    }
    for round in 0..10 {
        let order = |deadline| json!({"namespace": "/rooms", "deadline": deadline});
        let again = json!({"prevSessionId": previous, "instances": {"/rooms": ids}});
        let operator = {
            let (node, order) = (node.clone(), order(json!(3_600)));
            world.domain.spawn(async move {
                node.post("/registry/wind_down", super::rig::OPERATOR, &order)
                    .await
            })
        };
        let ack = worker.register_with(&node, again).await;
        assert_eq!(ack.get("duplicates"), None);
        operator.await.expect("it ends").ok();
        previous = session_of(&ack);

        let ack = heartbeat(&node, quiet_beat(&previous)).await.ok();
        let told: BTreeSet<_> = ack["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|message| message["id"].as_str().expect("an id").to_owned())
            .collect();
        for id in &ids {
            let row = world.row(&room(id)).await.expect("a row");
            assert_eq!(row.session.as_str(), previous);
            assert!(
                row.fence.is_none() || told.contains(id),
                "round {round}: {id}"
            );
        }
        node.post(
            "/registry/wind_down",
            super::rig::OPERATOR,
            &order(json!(null)),
        )
        .await
        .ok();
    }
}
