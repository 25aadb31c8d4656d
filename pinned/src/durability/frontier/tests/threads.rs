//! Many threads at one log.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;

use super::*;

const TASKS: u64 = 8;
const WRITES: u64 = 300;

/// What one task enlisted and what was confirmed to it.
#[derive(Default)]
struct Told {
    positions: Vec<u64>,
    confirmed: u64,
}

/// Writes its own row over and over, with effects in between; ends where the log does.
async fn writer(frontier: Frontier, row: String) -> Told {
    let mut told = Told::default();
    for n in 1..=WRITES {
        let enlisted = frontier.segment(|segment| {
            segment.stage(key(&row), Some(state(false, n)));
            frontier.position()
        });
        let Ok(position) = enlisted else { break };
        told.positions.push(position);
        if n % 7 == 0 {
            let effect = frontier.enlist(async { Ok::<(), FrontierError>(()) });
            let Ok(receipt) = effect else { break };
            told.positions.push(receipt.position());
        }
        if n % 3 == 0 && frontier.wait_for(position).await.is_ok() {
            told.confirmed = n;
        }
    }
    told
}

/// Runs the writers beside `meanwhile`; nobody hangs.
async fn contend(scene: &Scene, meanwhile: impl Future<Output = ()>) -> Vec<Told> {
    let domain = Domain::real();
    let writers = (0..TASKS).map(|task| {
        let writer = writer(scene.frontier.clone(), format!("row{task}"));
        domain.spawn(writer)
    });
    let writers: Vec<_> = writers.collect();
    let all = async { tokio::join!(join_all(writers), meanwhile).0 };
    let told = domain.timeout(Duration::from_secs(60), all).await;
    let told = told.expect("somebody hangs");
    told.into_iter()
        .map(|told| told.expect("no task panics"))
        .collect()
}

/// D13.3: every position from 1 on is one effect's.
fn assert_gapless(told: &[Told]) -> u64 {
    let mut positions: Vec<u64> = told
        .iter()
        .flat_map(|told| told.positions.clone())
        .collect();
    positions.sort_unstable();
    let last = positions.len() as u64;
    assert_eq!(positions, (1..=last).collect::<Vec<_>>());
    last
}

/// D15.3: the store has what was confirmed, or something newer.
fn assert_kept(scene: &Scene, told: &[Told]) {
    let disk = scene.store.disk();
    for (task, told) in told
        .iter()
        .enumerate()
        .filter(|(_, told)| told.confirmed > 0)
    {
        let row = format!("row{task}=");
        let kept = disk.iter().find_map(|kept| kept.strip_prefix(&row));
        let kept: u64 = kept.expect("a row").parse().expect("a number");
        assert!(
            kept >= told.confirmed,
            "{row}{kept}, and {} was confirmed",
            told.confirmed
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn positions_are_unique_and_gapless_and_everybody_is_answered() {
    // D13.3, D13.6, D15.3
    for scene in [Scene::with_batches(), Scene::with_single_writes()] {
        let told = contend(&scene, async {}).await;
        assert_eq!(assert_gapless(&told), TASKS * (WRITES + WRITES / 7));
        scene.frontier.wait().await.expect("durable");
        assert_eq!(
            scene.store.disk(),
            (0..TASKS)
                .map(|task| format!("row{task}={WRITES}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(scene.owner.aborts(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failure_in_the_middle_hangs_nobody_and_takes_nothing_back() {
    // D16.1, D16.2, D16.3
    for scene in [Scene::with_batches(), Scene::with_single_writes()] {
        let told = contend(&scene, async {
            let _ = scene.frontier.wait_for(TASKS * WRITES / 4).await;
            scene.frontier.fail("enough".into());
        });
        let told = told.await;
        assert_gapless(&told);
        assert_kept(&scene, &told);
        assert_eq!(scene.owner.aborts(), 1);
        assert!(told.iter().any(|told| told.confirmed > 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_close_or_a_cut_in_the_middle_hangs_nobody() {
    // D17.3, D17.6
    for cut in [false, true] {
        let scene = Scene::with_batches();
        if cut {
            scene.store.hold();
        }
        let told = contend(&scene, async {
            if cut {
                // The writers wait for it again and again, so that there is always a write to hold up.
                scene.store.parked().await;
                scene.store.release_one();
                let _ = scene.frontier.wait_for(1).await;
                scene.store.parked().await;
                scene.owner.cut();
            } else {
                let _ = scene.frontier.wait_for(TASKS * WRITES / 4).await;
                scene.frontier.close();
            }
        });
        let told = told.await;
        assert_gapless(&told);
        assert_kept(&scene, &told);
        assert_eq!(scene.owner.aborts(), usize::from(cut));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_one_segment_changes_reaches_the_store_together() {
    // D4.3, D14.2
    let scene = Scene::with_batches();
    let next = AtomicU64::new(0);
    let pairs = async {
        for _ in 0..WRITES {
            let outcome = scene.frontier.atomic(|| {
                let n = next.fetch_add(1, Ordering::SeqCst);
                scene.set("a", n);
                scene.set("b", n);
            });
            outcome.expect("open");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(contend(&scene, pairs), async {});
    scene.frontier.wait().await.expect("durable");
    for call in scene.store.calls() {
        let value = |row: &str| {
            let at = call.find(row)? + row.len();
            call[at..].split([',', ']']).next().map(str::to_owned)
        };
        assert_eq!(value(" a=").or(value("[a=")), value(" b=").or(value("[b=")));
    }
}

// D13.6, D15.1
#[test]
fn segments_that_ask_for_each_others_receipts_do_not_wait_for_each_other() {
    use std::sync::{Arc, Barrier, mpsc};
    let of = |id: &str| {
        let store = Arc::new(crate::durability::MemoryStore::new());
        crate::durability::Frontier::new(store, crate::durability::InstanceKey::new("/n", id), 0)
    };
    let (a, b) = (of("a"), of("b"));
    let (both, (told, telling)) = (Arc::new(Barrier::new(2)), mpsc::channel());
    for (mine, other) in [(a.clone(), b.clone()), (b, a)] {
        let (both, told) = (Arc::clone(&both), told.clone());
        std::thread::spawn(move || {
            mine.atomic(|| {
                both.wait();
                drop(other.receipt());
                drop(other.wait());
            })
            .unwrap();
            told.send(()).unwrap();
        });
    }
    for _ in 0..2 {
        telling
            .recv_timeout(std::time::Duration::from_secs(3))
            .expect("no deadlock");
    }
}
