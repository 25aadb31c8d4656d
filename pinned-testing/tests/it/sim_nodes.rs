//! Workers that crash over one disk.

use std::time::Duration;

use http::StatusCode;
use pinned::WorkerBuilder;
use pinned::durability::{Claim, InstanceKey, RowFilter, StateStore as _};
use pinned_testing::sim::{
    Crashed, Node, NodeError, Sim, SimDisk, SimSchedule, SimStore, TraceEvent,
};
use pinned_testing::{Gate, TestClient};

use crate::ledger::{Disk, Ledger};

const LATENCY: Duration = Duration::from_millis(10);

fn blue() -> InstanceKey {
    InstanceKey::new("/ledgers", "blue")
}

/// The names of the entries that are on the disk.
fn entries(disk: &SimDisk) -> Vec<String> {
    let rows = disk.memory().rows(&blue());
    rows.iter().map(|row| row.key.tray_ns.to_string()).collect()
}

/// A node whose ledgers write to the store of their own generation.
fn node(sim: &Sim, disk: &SimDisk) -> Node {
    let host = |worker: WorkerBuilder, store: &SimStore| {
        let disk = Disk::new(store.clone());
        worker.host::<Ledger>("/ledgers").state(disk)
    };
    Node::new(sim, "worker", disk.clone(), host)
        .schedule(SimSchedule::new().latency(Duration::ZERO..=LATENCY))
}

/// Makes entries one after the other, and gives those that were confirmed up to the end.
async fn enter(client: TestClient, confirmed: &parking_lot::Mutex<Vec<String>>) {
    for entry in ["a", "b", "c", "d"] {
        let path = format!("/ledgers/blue/enter/{entry}");
        assert_eq!(client.post(path).send().await.status(), StatusCode::OK);
        confirmed.lock().push(entry.to_owned());
    }
}

#[test]
fn each_start_is_a_generation_at_an_epoch_of_its_own() {
    // S3.1
    Sim::run(1, |sim| async move {
        let disk = SimDisk::new();
        let mut node = node(&sim, &disk);
        for epoch in 1..=3 {
            node.start().await.expect("started");
            let entered = node.run(|client| async move {
                client.post("/ledgers/blue/enter/a").send().await.status()
            });
            assert_eq!(entered.await, Ok(StatusCode::OK));
            assert_eq!((node.epoch(), disk.memory().epoch(&blue())), (epoch, epoch));
            node.stop().await.expect("stopped");
            assert!(!node.is_running());
        }
    });
}

#[test]
fn a_crash_leaves_the_client_without_an_answer_and_a_handler_without_an_end() {
    // S3.3, S5.29
    Sim::run(1, |sim| async move {
        let gate = Gate::new();
        let host = {
            let gate = gate.clone();
            move |worker: WorkerBuilder, _: &SimStore| {
                worker.host::<Ledger>("/ledgers").state(gate.clone())
            }
        };
        let mut node = Node::new(&sim, "worker", SimDisk::new(), host);
        node.start().await.expect("started");
        let hang = |client: TestClient| async move {
            client.post("/ledgers/blue/hang").send().await.status()
        };
        let (answer, ()) = tokio::join!(node.run(hang), async {
            gate.reached().await;
            node.crash();
            gate.open();
        });
        assert_eq!(answer, Err(Crashed));
        assert_eq!(node.run(|_| async {}).await, Err(Crashed));
        let stopped = node.stop().await;
        assert!(matches!(stopped, Err(NodeError::Crashed(Crashed))));
        node.start().await.expect("started again");
        assert_eq!(node.run(hang).await, Ok(StatusCode::OK));
        node.stop().await.expect("stopped");
    });
}

/// Runs the entries with a crash before operation `point`: what was confirmed, and the trace.
fn crashed_at(seed: u64, point: u64) -> (Vec<String>, Vec<TraceEvent>) {
    Sim::run(seed, move |sim| async move {
        let disk = SimDisk::new();
        let mut node = node(&sim, &disk).crash_before([point]);
        let confirmed = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        node.start().await.expect("started");
        let program = {
            let confirmed = std::sync::Arc::clone(&confirmed);
            node.run(|client| async move { enter(client, &confirmed).await })
        };
        assert_eq!(program.await, Err(Crashed), "before operation {point}");
        assert_eq!(disk.ops(), point);

        // D15.3: what was confirmed is there; the operation of the crash never took place.
        let confirmed = confirmed.lock().clone();
        assert_eq!(entries(&disk), confirmed);
        sim.advance(LATENCY * 10).await;
        assert_eq!(entries(&disk), confirmed, "the dead write nothing");

        node.start().await.expect("started again");
        let all = std::sync::Arc::default();
        let again = std::sync::Arc::clone(&all);
        let program = node.run(|client| async move { enter(client, &again).await });
        assert_eq!(program.await, Ok(()));
        assert_eq!(entries(&disk), *all.lock());
        // S5.27
        let store = node.store().expect("running").clone();
        let stale = store.list(Claim::new(blue(), 1), RowFilter::all()).await;
        assert!(stale.expect_err("fenced off").is_fence_lost());
        node.stop().await.expect("stopped");
        (confirmed, sim.trace())
    })
}

#[test]
fn what_was_confirmed_before_any_crash_point_is_on_the_disk() {
    // S3.2, S6.2, D15.3
    for seed in 0..2 {
        for point in 1..=4 {
            let (confirmed, _) = crashed_at(seed, point);
            assert_eq!(confirmed.len() as u64, point - 1);
        }
    }
}

#[test]
fn a_crash_replays() {
    // S1.10, S6.5
    assert_eq!(crashed_at(7, 3), crashed_at(7, 3));
}

#[test]
#[should_panic(expected = "crash points are positive and grow")]
fn crash_points_that_do_not_grow_are_refused() {
    // S3.2
    Sim::run(1, |sim| async move {
        let _ = node(&sim, &SimDisk::new()).crash_before([3, 3]);
    });
}
