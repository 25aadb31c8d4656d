//! Many instances and many tasks at once.

use std::sync::Arc;

use pinned::durability::{RowFilter, StoreError};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

use super::scene::{Activation, Scene, Verdict, delete, holds, key, number, number_of, same, set};

pub(super) async fn checks(scene: &Scene) {
    instances_do_not_disturb_one_another(scene).await;
    tasks_of_one_instance_lose_no_row(scene).await;
    a_batch_is_seen_whole(scene).await;
    two_claimants_race(scene).await;
    of_many_claimants_the_highest_stays(scene).await;
}

async fn instances_do_not_disturb_one_another(scene: &Scene) {
    let mut tasks = JoinSet::new();
    for n in 0..64_u64 {
        let room = scene.fresh();
        tasks.spawn(async move {
            let (rule, work) = ("D1.6 (under contention)", key("work", "~"));
            for step in 0..20 {
                room.set(&work, step % 2 == 0, number(n * 1_000 + step))
                    .await
                    .holds(rule);
                let expected = Some((step % 2 == 0, number(n * 1_000 + step)));
                room.holds_row(rule, &work, expected).await;
            }
            room.holds_rows(rule, &[("work", "~", false, number(n * 1_000 + 19))])
                .await;
        });
    }
    tasks.join_all().await;
}

async fn tasks_of_one_instance_lose_no_row(scene: &Scene) {
    const TASKS: u64 = 16;
    let (room, rule) = (scene.fresh(), "D3.1 (under contention)");
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let room = room.clone();
        tasks.spawn(async move {
            for n in 0..20 {
                let own = key("work", &format!("{task:02}"));
                room.set(&own, true, number(n)).await.holds(rule);
            }
        });
    }
    tasks.join_all().await;
    let expected: Vec<_> = (0..TASKS)
        .map(|task| ("work".to_owned(), format!("{task:02}"), true, number(19)))
        .collect();
    same(
        rule,
        "the rows of all tasks",
        &room.rows(rule).await,
        &expected,
    );
}

async fn a_batch_is_seen_whole(scene: &Scene) {
    let room = scene.fresh();
    if !room.batches() {
        return;
    }
    let rule = "D4.3 (a batch is seen whole or not at all)";
    let rows = ["a", "b", "c", "d"].map(|id| key("work", id));
    let mut tasks = JoinSet::new();
    for writer in 0..4 {
        let (room, rows) = (room.clone(), rows.clone());
        tasks.spawn(async move {
            for n in 0..25 {
                let ops = if n % 5 == 4 {
                    rows.iter().map(delete).collect()
                } else {
                    rows.iter()
                        .map(|row| set(row, true, number(writer * 100 + n)))
                        .collect()
                };
                room.batch(ops).await.holds(rule);
            }
        });
    }
    for _ in 0..4 {
        let (room, all) = (room.clone(), rows.len());
        tasks.spawn(async move {
            for _ in 0..25 {
                let found = room.list(RowFilter::all()).await.holds(rule);
                let whole = found.is_empty() || found.len() == all;
                holds(
                    rule,
                    &format!("all rows of a batch are there, not {}", found.len()),
                    whole,
                );
                let numbers = found
                    .iter()
                    .map(|row| number_of(rule, &row.state.doc.to_map()));
                let numbers: Vec<u64> = numbers.collect();
                let one = numbers.windows(2).all(|pair| pair[0] == pair[1]);
                holds(
                    rule,
                    &format!("all rows are of one batch: {numbers:?}"),
                    one,
                );
            }
        });
    }
    tasks.join_all().await;
}

const FENCES: &str = "D2.1 (no write of a lower epoch after an acquisition)";

/// After the higher epoch has acquired, no write of the lower one lands.
async fn two_claimants_race(scene: &Scene) {
    let mut tasks = JoinSet::new();
    for delay in 0..32 {
        let first = scene.fresh();
        let second = first.at(2);
        let start = Arc::new(Barrier::new(2));
        tasks.spawn({
            let start = Arc::clone(&start);
            async move {
                start.wait().await;
                write_until_fenced(&first).await;
            }
        });
        tasks.spawn(async move {
            start.wait().await;
            for _ in 0..delay {
                yield_now().await;
            }
            let acquired = second.rows(FENCES).await;
            for _ in 0..10 {
                let now = second.rows(FENCES).await;
                same(FENCES, "the rows after the acquisition", &now, &acquired);
            }
            second
                .set(&key("work", "~"), false, number(0))
                .await
                .holds(FENCES);
            second
                .holds_row(FENCES, &key("work", "~"), Some((false, number(0))))
                .await;
        });
    }
    tasks.join_all().await;
}

/// Writes in every way there is, until it is fenced; and then it stays fenced.
async fn write_until_fenced(first: &Activation) {
    let (work, other) = (key("work", "~"), key("other", "~"));
    for n in 1.. {
        // A store that never makes anybody wait would keep the thread from the other claimant.
        yield_now().await;
        let outcome = match n % 4 {
            0 => first.delete(&other).await,
            1 if first.batches() => {
                let ops = vec![set(&work, true, number(n)), set(&other, true, number(n))];
                first.batch(ops).await
            }
            _ => first.set(&work, true, number(n)).await,
        };
        match outcome {
            Ok(()) => {}
            Err(StoreError::FenceLost(_)) => break,
            Err(error) => panic!("{FENCES}: expected success or FenceLost, found {error:?}"),
        }
    }
    for n in 0..5 {
        first
            .set(&work, true, number(n))
            .await
            .fenced("D2.7 (permanent)", &first.claim);
    }
}

async fn of_many_claimants_the_highest_stays(scene: &Scene) {
    const CLAIMANTS: u64 = 16;
    let (room, work) = (scene.fresh(), key("work", "~"));
    let mut tasks = JoinSet::new();
    for epoch in 1..=CLAIMANTS {
        let (claimant, work) = (room.at(epoch), work.clone());
        tasks.spawn(async move {
            let mut landed = 0;
            for _ in 0..10 {
                match claimant.set(&work, true, number(epoch)).await {
                    Ok(()) => landed += 1,
                    Err(StoreError::FenceLost(_)) => break,
                    Err(error) => {
                        panic!("{FENCES}: expected success or FenceLost, found {error:?}")
                    }
                }
            }
            (epoch, landed)
        });
    }
    for (epoch, landed) in tasks.join_all().await {
        if epoch == CLAIMANTS {
            same(
                FENCES,
                "the writes of the highest epoch that landed",
                &landed,
                &10,
            );
        }
    }
    let highest = room.at(CLAIMANTS);
    highest
        .holds_row(FENCES, &work, Some((true, number(CLAIMANTS))))
        .await;
}
