//! One node at a time.

use std::sync::Arc;
use std::time::Duration;

use super::fakes::{FakeFleet, LEASE_TTL, Rows, key, pass, scan, store};

// P8.1
#[tokio::test(start_paused = true)]
async fn one_node_scans_and_another_takes_over_when_it_is_gone() {
    let store = store();
    let (rows_a, rows_b) = (Arc::new(Rows::default()), Arc::new(Rows::default()));
    let fleet = FakeFleet::willing();
    let a = scan(Arc::new(store.node()), &rows_a, &fleet, "a");
    pass(Duration::from_secs(1)).await;
    let _b = scan(Arc::new(store.node()), &rows_b, &fleet, "b");
    pass(LEASE_TTL * 4).await;
    assert!(*rows_a.looks.lock() > 50);
    assert_eq!(*rows_b.looks.lock(), 0);
    rows_b.mark(key("blue"));
    // It goes without a word.
    drop(a);
    let looks = *rows_a.looks.lock();
    pass(LEASE_TTL + LEASE_TTL / 3 + Duration::from_secs(2)).await;
    assert_eq!(*rows_a.looks.lock(), looks);
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 1);
}

// P8.1
#[tokio::test(start_paused = true)]
async fn a_node_that_stands_down_is_followed_at_once() {
    let store = store();
    let (rows_a, rows_b) = (Arc::new(Rows::default()), Arc::new(Rows::default()));
    let fleet = FakeFleet::willing();
    let a = scan(Arc::new(store.node()), &rows_a, &fleet, "a");
    pass(Duration::from_secs(1)).await;
    let _b = scan(Arc::new(store.node()), &rows_b, &fleet, "b");
    pass(LEASE_TTL).await;
    let scanner = Arc::clone(&a.scanner);
    drop(a);
    scanner.stand_down().await;
    pass(LEASE_TTL / 3 + Duration::from_secs(1)).await;
    assert!(*rows_b.looks.lock() > 0);
}
