//! Seams looked at one by one (S6.8, S6.9).
//!
//! The specification lets a store without batches tear an admission, or an acknowledgement, into several writes, and says
//! how to heal that. Here each is one write of the row, so there is nothing to heal: that is what is shown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pinned_testing::sim::Sim;

use super::image::{RowImage, name};
use super::plan::{Lane, Plan};
use super::run::Failure;
use super::scene::{Cut, Scene};

const SEED: u64 = 3;
const ITEM: u64 = 1;

/// What a crash left of the only item.
struct Left {
    point: u64,
    acknowledged: bool,
    row: Option<Arc<RowImage>>,
    /// The log after the next life.
    log: Vec<(u64, u64)>,
}

impl Left {
    /// How many of the entries of an admission are there.
    fn parts(&self) -> usize {
        let queues = ["queue", "feed", "steer"];
        let row = self.row.as_ref();
        row.map_or(0, |row| {
            let there = |queue: &&&str| !row.queue(queue).is_empty();
            queues.iter().filter(there).count()
        })
    }

    fn number(&self, entry: &str) -> u64 {
        self.row.as_ref().map_or(0, |row| row.number(entry))
    }
}

/// Admits one item, with a crash before each operation in turn, from the first on to the last of all.
fn crashes(lane: &'static str, id: &'static str) -> Vec<Left> {
    (1..).map_while(|point| crash(lane, id, point)).collect()
}

/// `None` when all was done before the crash.
fn crash(lane: &'static str, id: &'static str, point: u64) -> Option<Left> {
    let plan = Plan::new(SEED, Lane::Singles).crashing([point]);
    Sim::run(SEED, move |sim| async move {
        let mut scene = Scene::new(&sim, &plan);
        let lived = async {
            scene.start().await?;
            scene.wake().await?;
            scene.admit(lane, id, ITEM).await?;
            scene.settle().await
        };
        match lived.await {
            Ok(()) => return None,
            Err(Cut::Crashed) => {}
            Err(Cut::Broken) => panic!("crash before {point}: {}", found(&scene)),
        }
        let name = name(lane, id);
        let acknowledged = scene.watch.ledger.lock().items(&name).acknowledged;
        let row = scene.watch.look().rows.get(&name).cloned();
        scene.crashed();
        again(&mut scene).await;
        let log = scene.watch.look().rows.get(&name).map(|row| row.log());
        Some(Left {
            point,
            acknowledged: acknowledged.contains(&ITEM),
            row,
            log: log.unwrap_or_default(),
        })
    })
}

/// The next life, until nothing is left to do.
async fn again(scene: &mut Scene) {
    let lived = async {
        scene.start().await?;
        scene.wake().await?;
        scene.settle().await
    };
    if lived.await.is_err() {
        panic!("the life after: {}", found(scene));
    }
}

fn found(scene: &Scene) -> Failure {
    Failure::Broken(scene.watch.found())
}

const LANES: [(&str, &str); 2] = [("work", "~"), ("kwork", "k1")];

#[test]
fn an_admission_and_an_acknowledgement_are_one_write_each() {
    // S6.8
    for (lane, id) in LANES {
        let lives = crashes(lane, id);
        for left in &lives {
            let parts = left.parts();
            assert!(
                parts == 0 || parts == 3,
                "{lane}, crash before {}",
                left.point
            );
            let of_delivery = left.number("~attempts") > 0;
            assert!(
                parts == 3 || !of_delivery,
                "{lane}, crash before {}",
                left.point
            );
        }
        // One write brings all of the item, and one takes all of it away.
        let changes = lives
            .windows(2)
            .filter(|two| two[0].parts() != two[1].parts());
        assert_eq!(changes.count(), 2, "{lane}");
        let unhandled = |left: &Left| left.parts() == 0 && left.number("done") == 0;
        assert!(unhandled(&lives[0]));
        assert_eq!(lives.last().map(|left| left.number("done")), Some(1));
    }
}

#[test]
fn an_acknowledged_item_runs_after_any_crash_and_its_deliveries_are_counted() {
    // S6.9, S5.9, T11.2
    for (lane, id) in LANES {
        let lives = crashes(lane, id);
        for left in &lives {
            let point = left.point;
            let executed = left.log.last().map(|run| run.0) == Some(ITEM);
            assert!(
                executed || !left.acknowledged,
                "{lane}, crash before {point}"
            );
            if left.parts() == 3 {
                let attempts = left.number("~attempts");
                assert_eq!(
                    left.log.last(),
                    Some(&(ITEM, attempts + 1)),
                    "{lane}, crash before {point}"
                );
            }
        }
        let again = |left: &&Left| left.log.last() == Some(&(ITEM, 2));
        assert!(
            lives.iter().any(|left| again(&left)),
            "{lane}: none was delivered twice"
        );
    }
}

#[test]
fn a_lane_at_work_comes_back_alone_and_one_at_rest_stays_closed() {
    // S6.9, S5.26
    let plan = Plan::new(SEED, Lane::Singles);
    let (came_back, k2) = Sim::run(SEED, move |sim| async move {
        let mut scene = Scene::new(&sim, &plan);
        let lived = async {
            scene.start().await?;
            scene.admit("kwork", "k1", 101).await?;
            scene.settle().await?;
            scene.admit("kwork", "k2", 102).await
        };
        assert!(lived.await.is_ok(), "{}", found(&scene));
        scene.node.crash();
        scene.crashed();
        let woken = async {
            scene.start().await?;
            scene.wake().await
        };
        assert!(woken.await.is_ok(), "{}", found(&scene));
        let came_back = scene.opened();
        assert!(scene.settle().await.is_ok(), "{}", found(&scene));
        let image = scene.watch.look();
        let k2 = image.row("kwork", "k2").map(RowImage::log);
        (came_back, k2)
    });
    assert_eq!(came_back, BTreeSet::from(["k2".to_owned()]));
    let runs = k2.unwrap_or_default();
    assert_eq!(runs.last().map(|run| run.0), Some(102));
}

#[test]
fn a_lane_that_closes_is_opened_anew_with_all_that_it_has_done() {
    // T9.1, T14.5: whenever the next item comes, also while the last write of the one before is under way
    for lane in Lane::ALL {
        for delay in (0..200).step_by(3).map(Duration::from_millis) {
            let plan = Plan::new(SEED, lane);
            Sim::run(SEED, move |sim| async move {
                let mut scene = Scene::new(&sim, &plan);
                let lived = async {
                    scene.start().await?;
                    // What others have on its way keeps the writes of this lane waiting.
                    let items = [("kwork", "k1", 101), ("work", "~", 1), ("work", "~", 2)];
                    scene.admit_all(&items).await?;
                    sim.domain().sleep(delay).await;
                    scene.admit("kwork", "k1", 102).await?;
                    scene.settle().await
                };
                assert!(lived.await.is_ok(), "after {delay:?}: {}", found(&scene));
                let image = scene.watch.look();
                let k1 = image.row("kwork", "k1").map(RowImage::log);
                let once = Some(vec![(101, 1), (102, 1)]);
                assert_eq!(k1, once, "after {delay:?}:\n  S5.5: not each once");
            });
        }
    }
}
