//! Futures that are dropped leave no lock behind (D11.9, D17.3).

use futures_util::FutureExt;
use pinned::durability::RowFilter;
use tokio::task::{JoinSet, yield_now};

use super::scene::{Scene, Verdict, holds, key, number, number_of, set};

const RULE: &str = "D11.9 (a dropped operation leaves no lock behind)";

pub(super) async fn checks(scene: &Scene) {
    dropped_before_and_after_the_first_poll(scene).await;
    dropped_midway(scene).await;
}

async fn dropped_before_and_after_the_first_poll(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    room.set(&work, false, number(0)).await.holds(RULE);
    for n in 1..50 {
        drop(room.set(&work, true, number(1_000 + n)));
        let mut polled = room.set(&work, true, number(2_000 + n));
        let _ = (&mut polled).now_or_never();
        drop(polled);
        drop(room.get(&work));
        drop(room.list(RowFilter::all()));
        // Nobody waits, here or next door.
        scene.fresh().set(&work, false, number(n)).await.holds(RULE);
        room.set(&work, false, number(n)).await.holds(RULE);
        let rule = "D3.6 (what was called earlier does not take effect later)";
        room.holds_row(rule, &work, Some((false, number(n)))).await;
    }
    // Nor does what was dropped come back after a successor has acquired.
    let second = room.at(2);
    let before = second.rows(RULE).await;
    room.set(&work, true, number(9))
        .await
        .fenced(RULE, &room.claim);
    holds(
        RULE,
        "a successor's rows are its own",
        second.rows(RULE).await == before,
    );
}

async fn dropped_midway(scene: &Scene) {
    let mut tasks = JoinSet::new();
    for turns in 0..32 {
        let (room, work) = (scene.fresh(), key("work", "~"));
        tasks.spawn(async move {
            room.set(&work, false, number(0)).await.holds(RULE);
            let writes = async {
                for n in 1_u64.. {
                    // A store may be so quick that nothing else in here would ever wait.
                    yield_now().await;
                    room.set(&work, true, number(n)).await.holds(RULE);
                    if room.batches() {
                        room.batch(vec![set(&work, true, number(n))])
                            .await
                            .holds(RULE);
                    }
                }
            };
            // Whichever operation is on its way after so many turns of the scheduler.
            let patience = async {
                for _ in 0..turns {
                    yield_now().await;
                }
            };
            tokio::select! {
                biased;
                () = writes => {}
                () = patience => {}
            }
            let successor = room.at(2);
            let row = successor.get(&work).await.holds(RULE);
            let Some(row) = row else {
                panic!("{RULE}: expected a row, whichever write was the last");
            };
            number_of(RULE, &row.doc.to_map());
            successor.set(&work, false, number(7)).await.holds(RULE);
            successor
                .holds_row(RULE, &work, Some((false, number(7))))
                .await;
        });
    }
    tasks.join_all().await;
}
