//! Which ids are woken, when, and how many at once.

use std::sync::Arc;
use std::time::Duration;

use pinboard::metrics::names;
use pinboard::placement::NotPlaced;
use pinboard::scanner::{Attempt, UNOWNED_MARKED_OLDEST, WAKES_AT_ONCE, WAKES_PER_SECOND};
use pinboard::store::PlacementKey;
use pinned_domain::Domain;
use pinned_testing::{MetricsProbe, capture_logs};

use super::fakes::{FakeFleet, LEASE_TTL, Rows, awake, key, pass, scan, store};

// P8.1, P8.2
#[tokio::test(start_paused = true)]
async fn a_marked_id_without_a_holder_is_woken_until_it_is_awake() {
    let rows = Arc::new(Rows::default());
    rows.mark(key("blue"));
    let fleet = FakeFleet::new(|_, tries| match tries {
        0..3 => Attempt::Activating,
        _ => awake(),
    });
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(5)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 4);
    // It is awake, and its row still marked: nobody disturbs it.
    pass(Duration::from_secs(60)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 4);
}

// P8.2
#[tokio::test(start_paused = true)]
async fn what_comes_to_nothing_is_tried_again_less_and_less_often() {
    let rows = Arc::new(Rows::default());
    for id in ["refused", "unreachable", "broken"] {
        rows.mark(key(id));
    }
    let fleet = FakeFleet::new(|key, _| match &*key.id {
        "refused" => Attempt::Refused,
        "unreachable" => Attempt::Unreachable,
        _ => Attempt::Failed { status: 404 },
    });
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(600)).await;
    for (id, longest) in [("refused", 15), ("unreachable", 15), ("broken", 90)] {
        let wakes = fleet.wakes_of(&key(id));
        let pauses: Vec<_> = wakes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses[0] <= Duration::from_millis(1500), "{id}: {pauses:?}");
        let last = pauses[pauses.len() - 1];
        assert!(last <= Duration::from_secs(longest), "{id}: {pauses:?}");
        assert!(
            last >= Duration::from_secs(longest * 2 / 3),
            "{id}: {pauses:?}"
        );
    }
}

// P8.2
#[tokio::test(start_paused = true)]
async fn many_rows_are_woken_few_at_once_and_at_a_bounded_rate() {
    const MANY: usize = 5_000;
    let rows = Arc::new(Rows::default());
    for id in 0..MANY {
        rows.mark(key(id));
    }
    let fleet = FakeFleet::willing();
    *fleet.takes.lock() = Duration::from_millis(20);
    let began = Domain::real().monotonic();
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(30)).await;
    let state = fleet.state.lock();
    assert_eq!(state.most_at_once, WAKES_AT_ONCE);
    // Each of them once.
    assert_eq!((state.wakes.len(), state.holders.len()), (MANY, MANY));
    for second in 1..=5 {
        let until = began + Duration::from_secs(second);
        let begun = state.wakes.iter().filter(|(at, _)| *at <= until).count();
        let most = WAKES_AT_ONCE + usize::try_from(second).unwrap() * WAKES_PER_SECOND as usize;
        assert!(begun <= most + 1, "{begun} in {second} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_id_is_asked_only_once_it_stays_marked_for_a_whole_lease() {
    let rows = Arc::new(Rows::default());
    rows.mark(key("blue"));
    let fleet = FakeFleet::willing();
    fleet.hold(key("blue"), 7);
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(LEASE_TTL - Duration::from_secs(1)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 0);
    // Another placement: the time begins anew.
    fleet.hold(key("blue"), 8);
    pass(LEASE_TTL - Duration::from_secs(1)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 0);
    pass(Duration::from_secs(4)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_nobody_marks_any_more_is_left_alone() {
    let rows = Arc::new(Rows::default());
    rows.mark(key("blue"));
    let fleet = FakeFleet::new(|_, _| Attempt::Refused);
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(5)).await;
    rows.marked.lock().clear();
    pass(Duration::from_secs(2)).await;
    let wakes = fleet.wakes_of(&key("blue")).len();
    assert!(wakes > 0);
    pass(Duration::from_secs(60)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), wakes);
}

// P8.2
#[tokio::test(start_paused = true)]
async fn a_namespace_without_workers_does_not_hold_up_the_others() {
    let rows = Arc::new(Rows::default());
    for id in 0..1_000 {
        rows.mark(PlacementKey::single("/gone", id.to_string()));
    }
    rows.mark(key("blue"));
    let fleet = FakeFleet::new(|key, _| match &*key.ns {
        "/gone" => Attempt::NotPlaced(NotPlaced::NoWorkers),
        _ => awake(),
    });
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(10)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 1);
    // And is not asked for again and again.
    let tried = fleet.state.lock().wakes.len();
    assert!(tried < 10 * 2 * WAKES_AT_ONCE, "{tried} wakes");
}

// P4.4, P8.2
#[tokio::test(start_paused = true)]
async fn nothing_is_tried_while_nothing_new_is_placed() {
    let rows = Arc::new(Rows::default());
    for id in 0..100 {
        rows.mark(key(id));
    }
    let left = Duration::from_secs(15);
    let fleet = FakeFleet::new(move |_, tries| match tries {
        0 => Attempt::NotPlaced(NotPlaced::Quarantined(left)),
        _ => awake(),
    });
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(left - Duration::from_secs(1)).await;
    let tried = fleet.state.lock().wakes.len();
    assert!(tried <= WAKES_AT_ONCE, "{tried} wakes");
    pass(Duration::from_secs(60)).await;
    assert_eq!(fleet.state.lock().holders.len(), 100);
}

// P8.3, P11
#[tokio::test(start_paused = true)]
async fn the_lag_and_the_wakes_are_counted() {
    let probe = MetricsProbe::new();
    let _watching = probe.watch();
    let rows = Arc::new(Rows::default());
    rows.mark(key("blue"));
    rows.mark(key("held"));
    let fleet = FakeFleet::new(|_, _| Attempt::Refused);
    fleet.hold(key("held"), 1);
    let scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(10)).await;
    let lag = |name| probe.gauge(name, &[]);
    assert_eq!(lag(names::UNOWNED_MARKED_ROWS), 1.0);
    let oldest = lag(UNOWNED_MARKED_OLDEST);
    assert!((9.0..=10.0).contains(&oldest), "{oldest}");
    assert!(probe.counter(names::WAKES, &[("outcome", "refused")]) > 2);
    // What this node does not see any more it does not tell.
    scanner.scanner.stand_down().await;
    assert_eq!(lag(names::UNOWNED_MARKED_ROWS), 0.0);
}

// P12.1
#[tokio::test(start_paused = true)]
async fn a_database_that_is_away_is_asked_again() {
    let rows = Arc::new(Rows::default());
    rows.mark(key("blue"));
    *rows.away.lock() = true;
    let fleet = FakeFleet::willing();
    let logs = capture_logs();
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(30)).await;
    assert_eq!(fleet.state.lock().wakes.len(), 0);
    let said = logs.find("cannot look for durable work").expect("told");
    assert_eq!(
        said.field("error"),
        Some("the durable store cannot be read: it is away")
    );
    *rows.away.lock() = false;
    pass(Duration::from_secs(3)).await;
    assert_eq!(fleet.wakes_of(&key("blue")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rows_that_no_request_can_name_are_left_alone() {
    let rows = Arc::new(Rows::default());
    for (ns, id) in [
        ("/rooms", "a b"),
        ("/rooms", ""),
        ("rooms", "x"),
        ("/a/b", "x"),
        ("/rooms", ".."),
    ] {
        rows.mark(PlacementKey::single(ns, id));
    }
    let fleet = FakeFleet::willing();
    let _scanner = scan(Arc::new(store()), &rows, &fleet, "a");
    pass(Duration::from_secs(5)).await;
    assert_eq!(fleet.state.lock().wakes.len(), 0);
}

// P4.3
#[tokio::test(start_paused = true)]
async fn every_node_learns_the_highest_epoch_whenever_the_fleet_starts_cold() {
    let rows = Arc::new(Rows::default());
    rows.marked.lock().insert(key("blue"), 41);
    let store = store();
    let fleets = [FakeFleet::willing(), FakeFleet::willing()];
    let _scanners: Vec<_> = fleets
        .iter()
        .zip(["a", "b"])
        .map(|(fleet, node)| scan(Arc::new(store.node()), &rows, fleet, node))
        .collect();
    pass(Duration::from_secs(2)).await;
    assert!(fleets.iter().all(|fleet| fleet.state.lock().floor == 41));
    // It rises with every placement, and only a cold start makes anyone forget.
    rows.marked.lock().insert(key("blue"), 57);
    pass(Duration::from_secs(2)).await;
    assert!(fleets.iter().all(|fleet| fleet.state.lock().floor == 41));
    for fleet in &fleets {
        fleet.state.lock().cold = true;
    }
    pass(Duration::from_secs(2)).await;
    assert!(fleets.iter().all(|fleet| fleet.state.lock().floor == 57));
}
