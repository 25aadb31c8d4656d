//! What is counted (P11, P3.3).

use pinboard::metrics::{Resolution, describe, names};
use pinboard::store::PlacementKey;
use pinned_testing::MetricsProbe;

use super::scene::*;

// P11
#[test]
fn resolutions_and_workers_are_counted_by_their_outcomes_and_states() {
    let probe = MetricsProbe::new();
    let watching = probe.watch();
    describe();
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut draining = fleet.worker("draining").await;
        draining.record.update.draining = true;
        fleet.beat(&draining).await;
        let node = fleet.node().await;
        assert!(node.resolve("blue").await.is_err());
        fleet.worker("open").await;
        let reading = node.keep_reading();
        sim.advance(ms(1)).await;
        for _ in 0..3 {
            assert!(node.resolve("blue").await.is_ok());
        }
        let stray = PlacementKey::single("/nowhere", "blue");
        assert!(node.placement.resolve(&stray).await.is_err());
        let counts = node.placement.resolutions();
        let told = serde_json::to_value(counts).expect("it is JSON");
        assert_eq!(
            told,
            serde_json::json!({
                "cached": 2, "held": 0, "placed": 1, "replaced": 0,
                "no-backends": 1, "quarantined": 0, "fenced": 0, "denied": 0,
            })
        );
        assert_eq!(counts.of(Resolution::Cached), 2);
        reading.abort();
    });
    drop(watching);
    let resolutions = |outcome| probe.counter(names::RESOLUTIONS, &[("outcome", outcome)]);
    assert_eq!(resolutions("cached"), 2);
    assert_eq!(resolutions("placed"), 1);
    assert_eq!(resolutions("no-backends"), 1);
    let workers = |state| probe.gauge(names::WORKERS, &[("state", state)]);
    assert_eq!((workers("open"), workers("draining")), (1.0, 1.0));
}
