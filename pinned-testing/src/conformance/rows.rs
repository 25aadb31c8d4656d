//! Rows: written whole, read back, kept apart (D1, D3).

use pinned::durability::{InstanceKey, RowFilter};
use serde_json::json;

use super::scene::{Scene, Verdict, key, number, same};

pub(super) async fn checks(scene: &Scene) {
    a_set_is_the_whole_row(scene).await;
    a_repeated_set_is_one_row(scene).await;
    deletes_repeat(scene).await;
    a_point_read_hits_or_misses(scene).await;
    instances_are_apart(scene).await;
    ids_are_case_sensitive(scene).await;
    docs_are_snapshots(scene).await;
}

async fn a_set_is_the_whole_row(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let (rule, rest) = ("D3.1", json!({}));
    room.set(&work, true, json!({ "queue": [1], "done": 0 }))
        .await
        .holds(rule);
    room.set(&work, true, json!({ "done": 1 }))
        .await
        .holds(rule);
    room.holds_row(rule, &work, Some((true, json!({ "done": 1 }))))
        .await;
    // An idle tray keeps its row (D1.4).
    room.set(&work, false, rest.clone()).await.holds("D1.4");
    room.holds_row("D1.4", &work, Some((false, rest))).await;
}

async fn a_repeated_set_is_one_row(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    for _ in 0..3 {
        room.set(&work, false, number(1)).await.holds("S10.4");
    }
    room.holds_rows("S10.4", &[("work", "~", false, number(1))])
        .await;
    for marked in [true, false, true] {
        room.set(&work, marked, number(1)).await.holds("S10.4");
        let rule = "S10.4 (the mark follows the last set)";
        room.holds_rows(rule, &[("work", "~", marked, number(1))])
            .await;
    }
}

async fn deletes_repeat(scene: &Scene) {
    let (room, work, other) = (scene.fresh(), key("work", "~"), key("work", "a"));
    room.set(&work, true, number(1)).await.holds("D3.1");
    room.set(&other, true, number(2)).await.holds("D3.1");
    for _ in 0..2 {
        room.delete(&work).await.holds("S10.4, D3.2");
        room.holds_rows("S10.4, D3.2", &[("work", "a", true, number(2))])
            .await;
    }
    room.set(&work, false, number(3)).await.holds("D3.1");
    room.holds_row("D3.1 (after a delete)", &work, Some((false, number(3))))
        .await;
}

async fn a_point_read_hits_or_misses(scene: &Scene) {
    let room = scene.fresh();
    room.set(&key("work", "a"), true, number(1))
        .await
        .holds("S10.6");
    room.holds_row("S10.6", &key("work", "a"), Some((true, number(1))))
        .await;
    for miss in [key("work", "b"), key("a", "work"), key("work", "~")] {
        room.holds_row("S10.6, D3.3", &miss, None).await;
    }
}

async fn instances_are_apart(scene: &Scene) {
    let (one, other) = (scene.namespace(), scene.namespace());
    let work = key("work", "~");
    // The same id under two namespaces, two ids under one, and two pairs that run together when they are joined.
    let keys = [
        InstanceKey::new(&*one, "blue"),
        InstanceKey::new(&*other, "blue"),
        InstanceKey::new(&*one, "red"),
        InstanceKey::new(format!("{one}/a"), "b"),
        InstanceKey::new(&*one, "a/b"),
    ];
    for (n, instance) in (0..).zip(&keys) {
        scene
            .at(instance, 1)
            .set(&work, true, number(n))
            .await
            .holds("D1.6");
    }
    for (n, instance) in (0..).zip(&keys) {
        let rule = "S10.4, D1.6";
        scene
            .at(instance, 1)
            .holds_rows(rule, &[("work", "~", true, number(n))])
            .await;
    }
    scene.at(&keys[0], 1).delete(&work).await.holds("D1.6");
    scene.at(&keys[0], 1).holds_rows("D1.6", &[]).await;
    scene
        .at(&keys[1], 1)
        .holds_row("D1.6", &work, Some((true, number(1))))
        .await;
}

async fn ids_are_case_sensitive(scene: &Scene) {
    let namespace = scene.namespace();
    let (lower, upper) = (
        InstanceKey::new(&*namespace, "blue"),
        InstanceKey::new(&*namespace, "Blue"),
    );
    let rule = "D1.1 (keys are compared byte by byte)";
    scene
        .at(&lower, 1)
        .set(&key("work", "a"), true, number(1))
        .await
        .holds(rule);
    scene
        .at(&lower, 1)
        .set(&key("work", "A"), true, number(2))
        .await
        .holds(rule);
    // Not trimmed, nor folded into their composed form.
    scene
        .at(&lower, 1)
        .set(&key("work", "a "), true, number(3))
        .await
        .holds(rule);
    scene
        .at(&lower, 1)
        .set(&key("work", "\u{e4}"), true, number(4))
        .await
        .holds(rule);
    scene
        .at(&lower, 1)
        .set(&key("work", "a\u{308}"), true, number(5))
        .await
        .holds(rule);
    scene.at(&upper, 1).holds_rows(rule, &[]).await;
    let rows = scene.at(&lower, 1).list(RowFilter::all()).await.holds(rule);
    same(rule, "the number of rows", &rows.len(), &5);
}

async fn docs_are_snapshots(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let mut doc = json!({ "queue": [1] });
    let written = room.set(&work, true, doc.clone());
    doc["queue"] = json!([1, 2]);
    written.await.holds("S10.5");
    let before = room.get(&work).await.holds("S10.5");
    let rule = "S10.5, D3.7";
    room.set(&work, true, doc.clone()).await.holds(rule);
    let before = before.map(|row| row.doc.to_map().into());
    same(
        rule,
        "what was read before a write",
        &before,
        &Some(json!({ "queue": [1] })),
    );
    room.holds_row(rule, &work, Some((true, doc))).await;
}
