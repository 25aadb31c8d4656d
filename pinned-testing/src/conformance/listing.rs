//! Filters and order (D5).

use pinned::durability::RowFilter;
use serde_json::json;

use super::scene::{Activation, Scene, Verdict, key, number, same};

pub(super) async fn checks(scene: &Scene) {
    filters_narrow(scene).await;
    an_instance_without_rows_lists_none(scene).await;
    rows_come_in_the_order_of_bytes(scene).await;
    the_tray_weighs_more_than_the_id(scene).await;
    many_rows_are_listed(scene).await;
}

async fn holds_list(room: &Activation, rule: &str, filter: RowFilter, expected: &[&str]) {
    let rows = room.list(filter).await.holds(rule);
    let rows: Vec<String> = rows.iter().map(|row| row.key.to_string()).collect();
    let expected: Vec<String> = expected.iter().map(|key| (*key).to_owned()).collect();
    same(rule, "the keys that are listed", &rows, &expected);
}

async fn filters_narrow(scene: &Scene) {
    let room = scene.fresh();
    for (tray_ns, tray_id, marked) in [
        ("work", "a", true),
        ("work", "b", false),
        ("mail", "~", true),
        ("works", "a", true),
    ] {
        room.set(&key(tray_ns, tray_id), marked, json!({}))
            .await
            .holds("D3.1");
    }
    let both = |tray_ns, marked| RowFilter {
        marked: Some(marked),
        ..RowFilter::tray(tray_ns)
    };
    let idle = RowFilter {
        marked: Some(false),
        ..RowFilter::all()
    };
    let everything = ["mail/~", "work/a", "work/b", "works/a"];
    let rule = "S10.7, D5.1";
    holds_list(&room, rule, RowFilter::all(), &everything).await;
    holds_list(&room, rule, RowFilter::tray("work"), &["work/a", "work/b"]).await;
    holds_list(
        &room,
        rule,
        RowFilter::marked(),
        &["mail/~", "work/a", "works/a"],
    )
    .await;
    holds_list(&room, rule, idle, &["work/b"]).await;
    holds_list(&room, rule, both("work", true), &["work/a"]).await;
    holds_list(&room, rule, both("work", false), &["work/b"]).await;
    let rule = "S10.7, D5.1 (no match)";
    holds_list(&room, rule, both("mail", false), &[]).await;
    // Neither a prefix nor a pattern.
    for none in ["wor", "WORK", "w%", "w*", "", "wor_"] {
        holds_list(&room, rule, RowFilter::tray(none), &[]).await;
    }
}

async fn an_instance_without_rows_lists_none(scene: &Scene) {
    let rule = "D3.4";
    holds_list(&scene.fresh(), rule, RowFilter::all(), &[]).await;
    holds_list(&scene.fresh(), rule, RowFilter::marked(), &[]).await;
}

/// Ascending by byte, whatever the language of the store takes for an order.
pub(super) const BY_BYTES: [&str; 16] = [
    "",
    " ",
    "!",
    "-",
    "10",
    "9",
    "A",
    "Z",
    "_",
    "a",
    "a-b",
    "aB",
    "ab",
    "~",
    "\u{e4}",
    "\u{1f600}",
];

async fn rows_come_in_the_order_of_bytes(scene: &Scene) {
    let (by_id, by_ns) = (scene.fresh(), scene.fresh());
    // Written in another order than they come back in.
    for name in BY_BYTES.iter().rev() {
        by_id
            .set(&key("work", name), true, json!({}))
            .await
            .holds("D3.1");
        by_ns
            .set(&key(name, "~"), true, json!({}))
            .await
            .holds("D3.1");
    }
    let rule = "S10.4, D5.3";
    let ids = BY_BYTES.map(|id| format!("work/{id}"));
    holds_list(
        &by_id,
        rule,
        RowFilter::all(),
        &ids.each_ref().map(String::as_str),
    )
    .await;
    let namespaces = BY_BYTES.map(|ns| format!("{ns}/~"));
    holds_list(
        &by_ns,
        rule,
        RowFilter::all(),
        &namespaces.each_ref().map(String::as_str),
    )
    .await;
    let rule = "D5.3 (a filter keeps the order)";
    holds_list(
        &by_id,
        rule,
        RowFilter::marked(),
        &ids.each_ref().map(String::as_str),
    )
    .await;
}

async fn the_tray_weighs_more_than_the_id(scene: &Scene) {
    let room = scene.fresh();
    let sorted = ["a/z", "a-/m", "a-b/b", "b/a"];
    for (tray_ns, tray_id) in [("b", "a"), ("a-b", "b"), ("a", "z"), ("a-", "m")] {
        room.set(&key(tray_ns, tray_id), false, json!({}))
            .await
            .holds("D3.1");
    }
    holds_list(&room, "D5.3", RowFilter::all(), &sorted).await;
}

async fn many_rows_are_listed(scene: &Scene) {
    const ROWS: u64 = 500;
    let room = scene.fresh();
    for n in 0..ROWS {
        room.set(&key("work", &format!("{n:04}")), n % 2 == 0, number(n))
            .await
            .holds("D3.1");
    }
    let rows = room.rows("D3.4").await;
    let expected: Vec<_> = (0..ROWS)
        .map(|n| ("work".to_owned(), format!("{n:04}"), n % 2 == 0, number(n)))
        .collect();
    same("D3.4", "all rows", &rows, &expected);
}
