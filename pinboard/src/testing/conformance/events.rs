//! The ring of events (P3.3).

use std::sync::Arc;

use super::scene::Scene;
use super::verdict::{Verdict, holds, same};
use crate::store::{Event, EventKind, EventPage};

const RING: usize = 1_000;

pub(super) async fn checks(scene: &Scene) {
    events_are_numbered_in_order(scene).await;
    an_event_comes_back_whole(scene).await;
    the_ring_keeps_the_latest(scene).await;
}

async fn events_are_numbered_in_order(scene: &Scene) {
    let rule = "P3.3 (each event has a number)";
    let node = scene.node().await;
    let start = end(scene, rule).await;
    scene.store.append_events(Vec::new()).await.holds(rule);
    let first = vec![event("1"), event("2")];
    scene.store.append_events(first).await.holds(rule);
    node.append_events(vec![event("3")]).await.holds(rule);

    let page = node.events_after(start, 100).await.holds(rule);
    same(
        rule,
        "the events",
        &details(&page),
        &expected(&["1", "2", "3"]),
    );
    let numbers: Vec<_> = page.events.iter().map(|event| event.seq).collect();
    holds(
        rule,
        &format!("the numbers {numbers:?} rise from {start}"),
        numbers[0] > start && numbers.is_sorted_by(|a, b| a < b),
    );
    same(rule, "where to go on", &page.next, &numbers[2]);

    let page = scene.store.events_after(start, 2).await.holds(rule);
    same(
        rule,
        "the first two",
        &details(&page),
        &expected(&["1", "2"]),
    );
    same(rule, "where to go on", &page.next, &numbers[1]);
    let page = scene.store.events_after(page.next, 2).await.holds(rule);
    same(rule, "the rest", &details(&page), &expected(&["3"]));
    let page = scene.store.events_after(page.next, 2).await.holds(rule);
    same(
        rule,
        "what comes after the last",
        &details(&page),
        &expected(&[]),
    );
    same(rule, "where to go on", &page.next, &numbers[2]);
}

async fn an_event_comes_back_whole(scene: &Scene) {
    let rule = "P3.3 (an event says when, and whom it concerns)";
    let start = end(scene, rule).await;
    let full = Event {
        seq: 0,
        at: 1_800_000_000_123,
        kind: EventKind::Takeover,
        client_id: Some("client".into()),
        session_id: Some("session".into()),
        env: Some("pr-42".into()),
        hostname: Some("pr-42.example.com".into()),
        namespaces: vec!["/a".into(), "/b".into()],
        id: Some("blue".into()),
        epoch: Some((1 << 60) + 1),
        detail: Some("\"quotes\", ünicode and\nlines".into()),
    };
    let bare = Event {
        namespaces: Vec::new(),
        client_id: None,
        detail: None,
        ..event("")
    };
    let both = vec![full.clone(), bare.clone()];
    scene.store.append_events(both).await.holds(rule);
    let page = scene.store.events_after(start, 10).await.holds(rule);
    let mut expected = vec![full, bare];
    for (expected, event) in expected.iter_mut().zip(&page.events) {
        expected.seq = event.seq;
    }
    same(rule, "the events", &page.events, &expected);
}

async fn the_ring_keeps_the_latest(scene: &Scene) {
    let rule = "P3.3 (a ring of 1,000)";
    let names: Vec<_> = (0..RING + 300).map(|n| format!("event-{n}")).collect();
    for some in names.chunks(130) {
        let some = some.iter().map(|name| event(name)).collect();
        scene.store.append_events(some).await.holds(rule);
    }
    let all = scene.store.events_after(0, 10 * RING).await.holds(rule);
    same(rule, "how many are kept", &all.events.len(), &RING);
    let latest: Vec<_> = names[300..].iter().cloned().map(Some).collect();
    same(rule, "those that are kept", &details(&all), &latest);
    let first = all.events[0].seq;
    let page = scene.store.events_after(first - 200, 10).await.holds(rule);
    same(
        rule,
        "where a reader goes on whose place has been overwritten",
        &page.events[0].seq,
        &first,
    );
    let page = scene.store.events_after(first, 10 * RING).await.holds(rule);
    same(
        rule,
        "how many come after the first",
        &page.events.len(),
        &(RING - 1),
    );
}

/// The number of the latest event.
async fn end(scene: &Scene, rule: &str) -> u64 {
    let page = scene.store.events_after(0, 10 * RING).await.holds(rule);
    page.next
}

fn event(detail: &str) -> Event {
    Event {
        seq: 0,
        at: 1_800_000_000_000,
        kind: EventKind::Register,
        client_id: Some("client".into()),
        session_id: None,
        env: None,
        hostname: None,
        namespaces: vec![Arc::from("/a")],
        id: None,
        epoch: None,
        detail: Some(detail.to_owned()),
    }
}

fn details(page: &EventPage) -> Vec<Option<String>> {
    let details = page.events.iter().map(|event| event.detail.clone());
    details.collect()
}

fn expected(details: &[&str]) -> Vec<Option<String>> {
    let details = details.iter().map(|detail| Some((*detail).to_owned()));
    details.collect()
}
