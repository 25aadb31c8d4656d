//! What users of comparable products met, in fleets (`cases.md`).

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::json;

use super::activity::{self, Event};
use super::load::{Kind, Load, all_executed};
use super::rig::{Member, PATIENCE, Rig, Size};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_join_and_leave_under_a_thousand_ids_without_a_second_holder() {
    // P4.2, P4.6: "a pinboard node joins, or leaves, under 1,000 ids of load: no two holders of an id at one time"
    let size = Size {
        nodes: 2,
        workers: 3,
        lease_ttl: Duration::from_secs(2),
    };
    let mut rig = Rig::start(size).await;
    // The third is known to the clients from the beginning, and is not there yet.
    rig.nodes.push(Member::new("pinboard-2".to_owned()));
    let load = Load::start(&rig, "nodes", Kind::Enqueue, 8, 125);
    tokio::time::sleep(Duration::from_secs(2)).await;
    rig.start_node(2);
    rig.settled().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    // One leaves in order, and one does not.
    rig.nodes[2].process().terminate();
    rig.nodes[2].process().ended_within(PATIENCE).await;
    rig.nodes[2].running = None;
    rig.nodes[1].kill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    rig.start_node(1);
    rig.start_node(2);
    rig.settled().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let outcome = load.end().await;
    assert!(
        outcome.confirmed.len() > 900,
        "{} ids: {:?}",
        outcome.confirmed.len(),
        outcome.errors
    );
    all_executed(&rig, 0, &outcome.confirmed).await;
    println!(
        "{} requests to {} ids, {} items confirmed and executed",
        outcome.sent,
        outcome.confirmed.len(),
        outcome.items()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_admitted_through_wind_downs_is_handled_in_order() {
    // P3.5, T13.1, T16.2, D15.3: "200 tray admissions a second through a wind-down: admitted equals handled, order per
    // sender kept"
    let size = Size {
        nodes: 1,
        workers: 2,
        lease_ttl: Duration::from_secs(2),
    };
    let rig = Rig::start(size).await;
    // A sender each, so that the order of what a row has taken is the order in which one client sent it.
    let load = Load::start(&rig, "wound", Kind::Enqueue, 8, 1);
    for round in 0..6 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let deadline = [0.0, 0.2, 1.0][round % 3];
        let order = json!({ "namespace": "/ledgers", "id": null, "deadline": deadline });
        let (status, answer) = rig.order("/registry/wind_down", &order).await;
        assert_eq!(status, 200, "{answer}");
    }
    let outcome = load.end().await;
    all_executed(&rig, 0, &outcome.confirmed).await;
    let mut handled: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in activity::read(&rig.activity_log()) {
        if line.event == Event::Deliver {
            let item = line.item.parse().expect("the load counts its items");
            let items = handled.entry(line.id).or_default();
            // One that an abort cut off comes again (T18.1).
            if items.last() != Some(&item) {
                items.push(item);
            }
        }
    }
    for (id, confirmed) in &outcome.confirmed {
        let items = &handled[id];
        assert!(items.is_sorted(), "{id}: {items:?}");
        for item in confirmed {
            let item = item.parse().expect("the load counts its items");
            assert!(items.binary_search(&item).is_ok(), "{id}: {item} is lost");
        }
    }
    println!(
        "{} requests, {} items, errors {:?}",
        outcome.sent,
        outcome.items(),
        outcome.errors
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_ids_with_pending_items_outlive_a_restart_of_the_whole_fleet() {
    // P6, H4.1: "5,000 ids with pending items, the whole fleet restarts: activations stay under the limits, spread over the
    // workers, all done in the end"
    const IDS: usize = 5_000;
    let size = Size {
        nodes: 2,
        workers: 3,
        lease_ttl: Duration::from_secs(2),
    };
    let mut rig = Rig::start(size).await;
    for worker in &mut rig.workers {
        worker.kill();
    }
    for node in &mut rig.nodes {
        node.kill();
    }
    rig.redis.restart().await;
    // As a fleet leaves them that has admitted and died: acquired once, marked, one item each.
    rig.history().run(&format!(
        "INSERT INTO pinned_epoch SELECT '/ledgers', 'n' || n, 7 FROM generate_series(1, {IDS}) AS n; \
         INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc) \
         SELECT '/ledgers', 'n' || n, 'work', '~', true, \
         '{{\"queue\": [{{\"id\": \"left\", \"takes\": 0, \"holds\": \"\"}}], \
            \"writer\": {{\"pid\": 1, \"epoch\": 7}}}}' \
         FROM generate_series(1, {IDS}) AS n"
    ));
    for index in 0..size.nodes {
        rig.start_node(index);
    }
    for index in 0..size.workers {
        rig.start_worker(index);
    }
    rig.settled().await;
    let began = Instant::now();
    let left = || {
        let count = rig.history().run(
            "SELECT count(*) FROM pinned_tray_index \
             WHERE tray_ns = 'work' AND (marked OR doc -> 'executed' -> 'left' IS NULL) AND id LIKE 'n%'",
        );
        count.trim().parse::<usize>().expect("a number")
    };
    let (mut last, mut progress) = (IDS, Instant::now());
    while last > 0 {
        let now = left();
        if now < last {
            (last, progress) = (now, Instant::now());
        }
        assert!(
            progress.elapsed() < PATIENCE,
            "{last} are left\n{}",
            rig.logs()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = began.elapsed();
    // Nobody was asked to do it all.
    let mut shares: HashMap<u32, usize> = HashMap::new();
    for line in activity::read(&rig.activity_log()) {
        if line.event == Event::Deliver {
            *shares.entry(line.pid).or_default() += 1;
        }
    }
    println!("{IDS} ids in {took:?}, by worker: {shares:?}");
    assert_eq!(shares.len(), size.workers);
    for share in shares.values() {
        assert!(*share > IDS / size.workers / 3, "{shares:?}");
    }
    // The node is as ready as before, and did not refuse the fleet's own traffic meanwhile.
    rig.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_nobody_has_registered_yet_ends_on_sigterm() {
    // W13.1, W3.16: "SIGTERM before registration has finished"
    let size = Size {
        nodes: 1,
        workers: 0,
        lease_ttl: Duration::from_secs(2),
    };
    let mut rig = Rig::start(size).await;
    rig.workers.push(Member::new("lonely".to_owned()));
    // One that nobody answers, and one whose node listens and never answers.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = silent.local_addr().expect("bound").port();
    for registry in [
        "http://127.0.0.1:1".to_owned(),
        format!("http://127.0.0.1:{port}"),
    ] {
        let advertised = rig.workers[0].url();
        rig.start_worker_through(0, &registry, &advertised);
        rig.until("it listens", async || {
            let asked = rig.http.get(format!("{advertised}/livez"));
            asked.send().await.ok()?.status().is_success().then_some(())
        })
        .await;
        let asked = rig.http.get(format!("{advertised}/readyz"));
        let ready = asked.send().await.expect("an answer");
        assert_eq!(ready.status(), 503);
        rig.workers[0].process().terminate();
        let status = rig.workers[0].process().ended_within(PATIENCE).await;
        assert_eq!(status.code(), Some(0), "{registry}\n{}", rig.logs());
        rig.workers[0].running = None;
    }
}
