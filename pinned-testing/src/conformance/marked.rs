//! The instances to wake (`StateStore::marked_instances`).

use pinned::durability::{InstanceKey, StateStore};
use serde_json::json;

use super::listing::BY_BYTES;
use super::scene::{Scene, Verdict, holds, key, number, same};

const RULE: &str = "D1.3 (marked_instances)";

pub(super) async fn checks(scene: &Scene) {
    marks_come_and_go(scene).await;
    pages_meet_in_the_order_of_bytes(scene).await;
    limits_are_kept(scene).await;
    nothing_is_acquired(scene).await;
}

/// The marked instances of `namespace`, in pages of `limit`.
async fn marked(store: &dyn StateStore, namespace: &str, limit: usize) -> Vec<InstanceKey> {
    // The namespace of what comes just before the first of them.
    let mut after = InstanceKey::new(&namespace[..namespace.len() - 1], "");
    let mut found: Vec<InstanceKey> = vec![];
    loop {
        let page = store
            .marked_instances(Some(after.clone()), limit)
            .await
            .holds(RULE);
        holds(
            RULE,
            "a page has at most as many as were asked for",
            page.len() <= limit,
        );
        for instance in &page {
            let ascending = found.last().is_none_or(|last| last < instance) && after < *instance;
            holds(RULE, "instances ascend, and come after `after`", ascending);
            if instance.namespace.starts_with(namespace) {
                found.push(instance.clone());
            } else if *instance.namespace > *namespace {
                return found;
            }
        }
        match page.last() {
            Some(last) if page.len() == limit => after = last.clone(),
            _ => return found,
        }
    }
}

async fn marks_come_and_go(scene: &Scene) {
    let (namespace, work) = (scene.namespace(), key("work", "~"));
    let (blue, red) = (
        InstanceKey::new(&*namespace, "blue"),
        InstanceKey::new(&*namespace, "red"),
    );
    let (room, other) = (scene.at(&blue, 1), scene.at(&red, 1));
    let shown = async |what: &str, expected: &[&InstanceKey]| {
        let found = marked(&*scene.store, &namespace, 10).await;
        same(RULE, what, &found.iter().collect(), &expected.to_vec());
    };
    shown("of nothing", &[]).await;
    other.set(&work, false, number(1)).await.holds(RULE);
    shown("beside an idle row", &[]).await;
    room.set(&work, true, number(1)).await.holds(RULE);
    room.set(&key("mail", "a"), true, number(2))
        .await
        .holds(RULE);
    room.set(&key("mail", "b"), false, number(3))
        .await
        .holds(RULE);
    shown("once, however many rows are marked", &[&blue]).await;
    other.set(&work, true, number(2)).await.holds(RULE);
    shown("of both", &[&blue, &red]).await;
    room.set(&work, false, number(4)).await.holds(RULE);
    shown("with one marked row left", &[&blue, &red]).await;
    room.delete(&key("mail", "a")).await.holds(RULE);
    shown("after its last marked row was deleted", &[&red]).await;
    other.set(&work, false, number(5)).await.holds(RULE);
    shown("after its row was unmarked", &[]).await;
}

async fn pages_meet_in_the_order_of_bytes(scene: &Scene) {
    let prefix = scene.namespace();
    let mut expected = vec![];
    for namespace in ["", "-b", "Z", "a", "~", "\u{e4}"] {
        for id in BY_BYTES {
            expected.push(InstanceKey::new(format!("{prefix}{namespace}"), id));
        }
    }
    for instance in expected.iter().rev() {
        scene
            .at(instance, 1)
            .set(&key("work", "~"), true, json!({}))
            .await
            .holds(RULE);
    }
    for limit in [1, 7, 1_000] {
        let found = marked(&*scene.store, &prefix, limit).await;
        same(RULE, &format!("in pages of {limit}"), &found, &expected);
    }
}

async fn limits_are_kept(scene: &Scene) {
    let instance = scene.instance();
    scene
        .at(&instance, 1)
        .set(&key("work", "~"), true, json!({}))
        .await
        .holds(RULE);
    let page = scene.store.marked_instances(None, 0).await.holds(RULE);
    same(RULE, "a page of none", &page, &vec![]);
    let page = scene.store.marked_instances(None, 1).await.holds(RULE);
    same(
        RULE,
        "the number on a page of one, from the start",
        &page.len(),
        &1,
    );
    let before = InstanceKey::new(&*instance.namespace, "blud");
    let page = scene
        .store
        .marked_instances(Some(before), usize::MAX)
        .await
        .holds(RULE);
    same(
        RULE,
        "the first without a limit",
        &page.first(),
        &Some(&instance),
    );
}

/// It has no epoch to acquire with, and shows instances whoever holds them.
async fn nothing_is_acquired(scene: &Scene) {
    let (room, work) = (scene.fresh().at(4), key("work", "~"));
    room.set(&work, true, number(1)).await.holds(RULE);
    let found = marked(&*scene.store, &room.claim.instance.namespace, 10).await;
    same(
        RULE,
        "whatever the epoch",
        &found,
        &vec![room.claim.instance.clone()],
    );
    room.set(&work, true, number(2)).await.holds(RULE);
    let late = room.at(3);
    late.set(&work, true, number(3))
        .await
        .fenced(RULE, &late.claim);
}
