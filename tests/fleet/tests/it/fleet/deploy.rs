//! Rolling deploys and graceful ends (P5.10, issue "the worker in a fleet", items 2 and 4).

use std::time::{Duration, Instant};

use serde_json::json;

use super::load::{Kind, Load, all_executed};
use super::rig::{PATIENCE, Rig, Size};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_deploy_shows_clients_no_error_and_loses_nothing() {
    // P5.10, P3.4
    let size = Size {
        nodes: 2,
        workers: 6,
        lease_ttl: Duration::from_secs(3),
    };
    let mut rig = Rig::start(size).await;
    // Three old ones; the others stand for the new version.
    for index in 3..6 {
        rig.workers[index].process().terminate();
        rig.workers[index].process().ended_within(PATIENCE).await;
        rig.workers[index].running = None;
    }
    rig.settled().await;
    let load = Load::start(&rig, "deploy", Kind::Mixed, 8, 10);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for index in 3..6 {
        rig.start_worker(index);
    }
    rig.settled().await;
    for index in 0..3 {
        let url = rig.workers[index].url();
        let listed = rig.operate(0, "/registry/workers").await.expect("a list");
        let client = listed["workers"]
            .as_array()
            .and_then(|workers| workers.iter().find(|worker| worker["advertiseUrl"] == url))
            .map(|worker| worker["clientId"].clone())
            .expect("registered");
        let (status, answer) = rig
            .order(
                "/registry/drain",
                &json!({ "clientId": client, "deadline": null }),
            )
            .await;
        assert_eq!(status, 200, "{answer}");
        tokio::time::sleep(Duration::from_millis(700)).await;
        rig.workers[index].process().terminate();
        let status = rig.workers[index].process().ended_within(PATIENCE).await;
        assert!(status.success(), "{status}\n{}", rig.logs());
        rig.workers[index].running = None;
        let (status, answer) = rig
            .order("/registry/undrain", &json!({ "clientId": client }))
            .await;
        assert_eq!(status, 200, "{answer}");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let outcome = load.end().await;
    all_executed(&rig, 0, &outcome.confirmed).await;
    let activations = rig.check_activity();
    println!(
        "{} requests, {} errors, {} items admitted and executed, {activations} activations",
        outcome.sent,
        outcome.errors.values().sum::<u64>(),
        outcome.items()
    );
    assert!(
        outcome.errors.is_empty(),
        "{:?}\n{}",
        outcome.errors,
        rig.logs()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graceful_exit_hands_its_ids_over_and_a_kill_costs_one_lease() {
    // cases.md: after SIGTERM no lease wait, after SIGKILL one lease at most
    let size = Size {
        nodes: 1,
        workers: 2,
        lease_ttl: Duration::from_secs(5),
    };
    let mut rig = Rig::start(size).await;
    let who = async |rig: &Rig, id: &str| {
        let asked = rig.http.get(rig.url(&format!("/ledgers/{id}/who")));
        let answer = asked.timeout(Duration::from_secs(2)).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let who: serde_json::Value = answer.json().await.ok()?;
        who["pid"].as_u64()
    };
    let first = u64::from(rig.workers[0].process().pid());
    let mut ids = Vec::new();
    for index in 0..40 {
        let id = format!("g{index}");
        if who(&rig, &id).await == Some(first) {
            ids.push(id);
        }
    }
    assert!(!ids.is_empty(), "ids are spread over the workers");
    rig.workers[0].process().terminate();
    let status = rig.workers[0].process().ended_within(PATIENCE).await;
    assert!(status.success(), "{status}");
    let ended = Instant::now();
    for id in &ids {
        let now_at = who(&rig, id).await.expect("served at once");
        assert_ne!(now_at, first);
    }
    assert!(
        ended.elapsed() < Duration::from_secs(2),
        "{:?}",
        ended.elapsed()
    );
    rig.start_worker(0);
    rig.settled().await;
    rig.workers[1].kill();
    let killed = Instant::now();
    rig.until("an id of the killed worker is served again", async || {
        who(&rig, &ids[0]).await
    })
    .await;
    let waited = killed.elapsed();
    assert!(
        waited < size.lease_ttl + Duration::from_secs(1),
        "{waited:?}"
    );
    rig.check_activity();
}
