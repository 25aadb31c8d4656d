//! Drains and cordons, kept by client id (P3.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::scene::{Scene, Worker};
use super::verdict::{Verdict, counts_down, holds, same};
use crate::store::{Drain, EndMode, HeartbeatOutcome};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) async fn checks(scene: &Scene) {
    only_a_known_client_takes_orders(scene).await;
    a_client_is_remembered(scene).await;
    an_order_is_told_until_it_is_lifted(scene).await;
    an_order_outlives_its_session(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    tokio::join!(a_drain_counts_down(scene), days(scene));
}

/// What takes days.
async fn days(scene: &Scene) {
    if !scene.virtual_time {
        return;
    }
    tokio::join!(
        a_timed_drain_is_kept_for_a_week(scene),
        a_cordon_is_kept_for_ever(scene),
        a_client_is_forgotten_after_a_week(scene),
        a_client_that_lives_is_not_forgotten(scene),
    );
}

async fn only_a_known_client_takes_orders(scene: &Scene) {
    let rule = "P3.4 (a client id that this keyspace never saw)";
    let client = scene.domain.token_hex(16);
    for order in [Some(Drain::Cordon), None] {
        let known = scene.store.order_drain(&client, order).await.holds(rule);
        same(rule, "whether it is known", &known, &false);
    }
    let record = scene.store.client(&client).await.holds(rule);
    same(rule, "what is remembered", &record, &None);
    // An order to a stranger leaves nothing for whoever comes by that name.
    let mut worker = scene.record(&[scene.ns()]);
    worker.client_id = client;
    let (_, registered) = scene.begin(&worker, rule).await;
    same(rule, "its order", &registered.drain, &None);
}

async fn a_client_is_remembered(scene: &Scene) {
    let rule = "P3.4 (what a worker serves is remembered)";
    let mut record = scene.record(&[scene.ns(), scene.ns()]);
    record.hostname = "pr-42.example.com".into();
    record.env = "pr-42".into();
    record.envs = BTreeMap::from([(record.namespaces[1].clone(), Arc::from("staging"))]);
    let (worker, _) = scene.begin(&record, rule).await;
    for alive in [true, false] {
        let client = scene.store.client(&record.client_id).await.holds(rule);
        let Some(client) = client else {
            panic!("{rule}: expected that the client is known; alive: {alive}");
        };
        same(rule, "its id", &client.client_id, &record.client_id);
        same(
            rule,
            "what it served",
            &client.namespaces,
            &record.namespaces,
        );
        same(rule, "its hostname", &client.hostname, &record.hostname);
        let envs: BTreeSet<_> = client.envs.iter().map(|env| &**env).collect();
        same(
            rule,
            "its envs",
            &envs,
            &BTreeSet::from(["pr-42", "staging"]),
        );
        scene.end(&worker, EndMode::Now, rule).await;
    }
}

async fn an_order_is_told_until_it_is_lifted(scene: &Scene) {
    let rule = "P3.4 (echoed in acks)";
    let worker = scene.worker(&[scene.ns()]).await;
    let hundred = Duration::from_secs(100);
    for order in [
        Some(Drain::Cordon),
        Some(Drain::By { left: hundred }),
        Some(Drain::By { left: 2 * hundred }),
        Some(Drain::Cordon),
        None,
    ] {
        give(scene, &worker, order, rule).await;
        match (order, told(scene, &worker, rule).await) {
            (Some(Drain::By { left }), Some(Drain::By { left: now })) => {
                counts_down(rule, "what is left", now, left);
            }
            (order, told) => same(rule, "the order", &told, &order),
        }
    }
}

async fn an_order_outlives_its_session(scene: &Scene) {
    let rule = "P3.4 (survives re-registration, and reaches a worker that is down)";
    let first = scene.worker(&[scene.ns()]).await;
    give(scene, &first, Some(Drain::Cordon), rule).await;
    let (second, registered) = scene.again(&first, rule).await;
    let cordon = Some(Drain::Cordon);
    same(
        rule,
        "the order, on registering",
        &registered.drain,
        &cordon,
    );
    give(scene, &second, None, rule).await;
    scene.end(&first, EndMode::Now, rule).await;
    scene.end(&second, EndMode::Now, rule).await;

    let hundred = Duration::from_secs(100);
    give(scene, &second, Some(Drain::By { left: hundred }), rule).await;
    let (third, registered) = scene.again(&second, rule).await;
    match registered.drain {
        Some(Drain::By { left }) => counts_down(rule, "what is left", left, hundred),
        other => panic!("{rule}: expected a drain, found {other:?}"),
    }
    holds(
        rule,
        "a heartbeat tells of it too",
        matches!(
            told(scene, &third, rule).await,
            Some(Drain::By { left }) if left <= hundred
        ),
    );
}

async fn a_drain_counts_down(scene: &Scene) {
    let rule = "P3.4 (kept past its deadline)";
    let worker = scene.worker(&[scene.ns()]).await;
    let second = Duration::from_secs(1);
    give(scene, &worker, Some(Drain::By { left: second }), rule).await;
    let _alive = scene.keep_alive(&worker);
    scene.wait_out(second).await;
    let passed = Some(Drain::By {
        left: Duration::ZERO,
    });
    let now = told(scene, &worker, rule).await;
    same(rule, "the order, past its deadline", &now, &passed);
    let (_, registered) = scene.again(&worker, rule).await;
    same(
        rule,
        "the order, on registering",
        &registered.drain,
        &passed,
    );
}

async fn a_timed_drain_is_kept_for_a_week(scene: &Scene) {
    let rule = "P3.4 (expires 7 days after its deadline)";
    let worker = scene.worker(&[scene.ns()]).await;
    let hour = DAY / 24;
    give(scene, &worker, Some(Drain::By { left: hour }), rule).await;
    scene.wait(hour + scene.just_before(7 * DAY)).await;
    let (worker, registered) = scene.again(&worker, rule).await;
    let passed = Some(Drain::By {
        left: Duration::ZERO,
    });
    same(rule, "the order, just before", &registered.drain, &passed);
    scene.wait(Duration::from_millis(1)).await;
    same(rule, "the order", &told(scene, &worker, rule).await, &None);
}

async fn a_cordon_is_kept_for_ever(scene: &Scene) {
    let rule = "P3.4 (a cordon never expires)";
    let worker = scene.worker(&[scene.ns()]).await;
    give(scene, &worker, Some(Drain::Cordon), rule).await;
    scene.wait(100 * DAY).await;
    let client = scene.store.client(&worker.record.client_id).await;
    holds(rule, "it is known", client.holds(rule).is_some());
    let (worker, registered) = scene.again(&worker, rule).await;
    let cordon = Some(Drain::Cordon);
    same(rule, "the order", &registered.drain, &cordon);
    give(scene, &worker, None, rule).await;
}

async fn a_client_is_forgotten_after_a_week(scene: &Scene) {
    let rule = "P3.4 (a client is remembered for 7 days)";
    let worker = scene.worker(&[scene.ns()]).await;
    scene.end(&worker, EndMode::Now, rule).await;
    let client = &worker.record.client_id;
    scene.wait(scene.just_before(7 * DAY)).await;
    let known = scene.store.client(client).await.holds(rule);
    holds(rule, "it is known just before", known.is_some());
    scene.wait(Duration::from_millis(1)).await;
    let known = scene.store.client(client).await.holds(rule);
    same(rule, "what is remembered", &known, &None);
    let cordon = Some(Drain::Cordon);
    let known = scene.store.order_drain(client, cordon).await.holds(rule);
    same(rule, "whether it takes orders", &known, &false);
}

async fn a_client_that_lives_is_not_forgotten(scene: &Scene) {
    let rule = "P3.4 (a worker that is registered takes orders, however long it has been)";
    let worker = scene.worker(&[scene.ns()]).await;
    let start = scene.domain.monotonic();
    while scene.domain.monotonic() - start < 8 * DAY {
        scene.wait(scene.options.lease_ttl * 9 / 10).await;
        scene.beat(&worker, rule).await;
    }
    let known = scene.store.client(&worker.record.client_id).await;
    holds(rule, "it is known", known.holds(rule).is_some());
    give(scene, &worker, Some(Drain::Cordon), rule).await;
    same(
        rule,
        "the order",
        &told(scene, &worker, rule).await,
        &Some(Drain::Cordon),
    );
}

async fn give(scene: &Scene, worker: &Worker, order: Option<Drain>, rule: &str) {
    let client = &worker.record.client_id;
    let known = scene.store.order_drain(client, order).await.holds(rule);
    same(rule, "whether the client is known", &known, &true);
}

async fn told(scene: &Scene, worker: &Worker, rule: &str) -> Option<Drain> {
    match scene.beat(worker, rule).await {
        HeartbeatOutcome::Renewed { drain, .. } => drain,
        other => panic!("{rule}: expected that the session lives, found {other:?}"),
    }
}
