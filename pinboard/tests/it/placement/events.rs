//! How events reach the ring (P3.3).

use std::sync::Arc;

use pinboard::events::{Events, WAITING};
use pinboard::store::{Event, EventKind};
use pinned_domain::TaskHandle;

use super::scene::*;
use super::spy::{Hold, Spy};

fn event(number: u64) -> Event {
    Event {
        seq: 0,
        at: number,
        kind: EventKind::Placed,
        client_id: None,
        session_id: None,
        env: None,
        hostname: None,
        namespaces: Vec::new(),
        id: None,
        epoch: None,
        detail: None,
    }
}

fn running(events: &Events, store: &Arc<Spy>, fleet: &Fleet) -> TaskHandle<()> {
    let (events, store, domain) = (events.clone(), Arc::clone(store), fleet.domain.clone());
    fleet.domain.spawn(async move {
        let _ = events.run(&*store, &domain).await;
    })
}

async fn ring(fleet: &Fleet) -> Vec<u64> {
    let page = fleet.store().events_after(0, 10_000).await;
    let events = page.expect("answers").events;
    events.iter().map(|event| event.at).collect()
}

#[test]
fn events_go_together_after_a_tenth_of_a_second() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let store = Arc::new(Spy::new(fleet.handle()));
        let events = Events::new();
        let running = running(&events, &store, &fleet);
        for number in 0..10 {
            events.record(event(number));
            sim.advance(ms(9)).await;
        }
        assert_eq!(store.count("append_events"), 0);
        sim.advance(ms(10)).await;
        assert_eq!(store.count("append_events"), 1);
        assert_eq!(ring(&fleet).await, (0..10).collect::<Vec<_>>());
        running.abort();
    });
}

#[test]
fn enough_of_them_do_not_wait() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let store = Arc::new(Spy::new(fleet.handle()));
        let events = Events::new();
        let running = running(&events, &store, &fleet);
        for number in 0..256 {
            events.record(event(number));
        }
        sim.advance(ms(1)).await;
        assert_eq!(ring(&fleet).await.len(), 256);
        running.abort();
    });
}

#[test]
fn with_nobody_to_take_them_the_oldest_give_way() {
    let events = Events::default();
    for number in 0..WAITING as u64 + 7 {
        events.record(event(number));
    }
    assert_eq!(events.dropped(), 7);
    let kept = events.take();
    assert_eq!(kept.len(), WAITING);
    assert_eq!(kept[0].at, 7);
}

// P12.4
#[test]
fn events_wait_in_order_for_a_store_that_is_away() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let store = Arc::new(Spy::new(fleet.handle()));
        let events = Events::new();
        let running = running(&events, &store, &fleet);
        store.set_away(true);
        for number in 0..5 {
            events.record(event(number));
        }
        sim.advance(5 * SECOND).await;
        events.record(event(5));
        store.set_away(false);
        sim.advance(2 * SECOND).await;
        assert_eq!(ring(&fleet).await, (0..6).collect::<Vec<_>>());
        running.abort();
    });
}

#[test]
fn a_batch_whose_sender_is_stopped_is_not_lost() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let store = Arc::new(Spy::new(fleet.handle()));
        let events = Events::new();
        let gate = store.hold("append_events", Hold::Before);
        let running = running(&events, &store, &fleet);
        for number in 0..3 {
            events.record(event(number));
        }
        gate.reached().await;
        events.record(event(3));
        running.abort();
        sim.advance(ms(1)).await;
        store.release_holds();
        events.flush(&*store).await.expect("the store answers");
        assert_eq!(ring(&fleet).await, [0, 1, 2, 3]);
    });
}
