//! Operations of one instance take effect in the order of their calls.

use futures_util::future::join_all;
use pinned::durability::RowFilter;

use super::scene::{Scene, Verdict, delete, key, number, number_of, same, set};

const CALLS: u64 = 100;
const RULE: &str = "D3.6, D10.6 (effects in the order of calls)";

pub(super) async fn checks(scene: &Scene) {
    the_last_of_many_wins(scene).await;
    the_last_wins_when_it_alone_is_awaited(scene).await;
    reads_see_what_was_called_before_them(scene).await;
    sets_deletes_and_batches_keep_their_order(scene).await;
    an_acquisition_parts_what_was_called_before_and_after(scene).await;
}

async fn the_last_of_many_wins(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let mut writes: Vec<_> = (0..CALLS)
        .map(|n| room.set(&work, true, number(n)))
        .collect();
    // Polled in the opposite order.
    writes.reverse();
    for written in join_all(writes).await {
        written.holds(RULE);
    }
    room.holds_row(RULE, &work, Some((true, number(CALLS - 1))))
        .await;
}

async fn the_last_wins_when_it_alone_is_awaited(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let earlier: Vec<_> = (0..CALLS)
        .map(|n| room.set(&work, true, number(n)))
        .collect();
    room.set(&work, false, number(CALLS)).await.holds(RULE);
    room.holds_row(RULE, &work, Some((false, number(CALLS))))
        .await;
    for written in join_all(earlier).await {
        written.holds(RULE);
    }
    room.holds_row(RULE, &work, Some((false, number(CALLS))))
        .await;
}

async fn reads_see_what_was_called_before_them(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let (mut writes, mut reads) = (vec![], vec![]);
    for n in 0..CALLS {
        writes.push(room.set(&work, true, number(n)));
        reads.push(room.get(&work));
    }
    let reads = join_all(reads).await;
    for (n, read) in (0..).zip(reads) {
        let found = read
            .holds(RULE)
            .map(|row| number_of(RULE, &row.doc.to_map()));
        same(RULE, "a read between two writes", &found, &Some(n));
    }
    for written in join_all(writes).await {
        written.holds(RULE);
    }
}

async fn sets_deletes_and_batches_keep_their_order(scene: &Scene) {
    let (room, work, other) = (scene.fresh(), key("work", "~"), key("other", "~"));
    let mut writes = vec![];
    for n in 0..CALLS {
        writes.push(room.set(&work, true, number(n)));
        writes.push(room.delete(&work));
        if room.batches() {
            writes.push(room.batch(vec![
                set(&work, false, number(n)),
                set(&other, true, number(n)),
            ]));
            writes.push(room.batch(vec![delete(&other)]));
        }
        writes.push(room.set(&other, true, number(n)));
        writes.push(room.delete(&work));
    }
    for written in join_all(writes).await {
        written.holds(RULE);
    }
    room.holds_rows(RULE, &[("other", "~", true, number(CALLS - 1))])
        .await;
}

async fn an_acquisition_parts_what_was_called_before_and_after(scene: &Scene) {
    let (first, work) = (scene.fresh(), key("work", "~"));
    let second = first.at(2);
    let before = first.set(&work, true, number(1));
    let acquired = second.list(RowFilter::all());
    let after = first.set(&work, true, number(2));
    after.await.fenced(RULE, &first.claim);
    let rows = acquired.await.holds(RULE);
    same(
        RULE,
        "the number of rows at the acquisition",
        &rows.len(),
        &1,
    );
    before.await.holds(RULE);
    second.holds_row(RULE, &work, Some((true, number(1)))).await;
}
