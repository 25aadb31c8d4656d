//! Times as long as a `Duration` can say, and clocks that leap.

use std::time::Duration;

use pinned::{HostOptions, PinnedWorker, pinned_api, route};

use crate::rig::{App, bounded, domain, pass, secs, settle};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Default)]
struct Idle;

#[pinned_api]
impl Idle {
    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "ok"
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_as_long_as_time_does_not_stop_the_sweep() {
    // H8.1, H12.7
    let app = App::of::<Idle>().await;
    app.worker().lease().renewed(Duration::MAX, None);
    pass(secs(121)).await;
    bounded(app.get("/t/a")).await.assert_ok("ok");
    pass(secs(306)).await;
    assert!(app.host::<Idle>().is_empty());
    app.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_without_end_lasts_until_the_instance_is_idle() {
    let app = App::of::<Idle>().await;
    let host = app.host::<Idle>();
    let held = bounded(host.read("a")).await.expect("a turn");
    host.wind_down("a", Some(Duration::MAX));
    let drain = domain().spawn({
        let worker = app.worker().clone();
        async move { worker.drain(Some(Duration::MAX)).await }
    });
    settle().await;
    // Reading the deadline puts it on the wall clock.
    let instance = bounded(host.instance("a")).await.expect("resident");
    assert!(instance.context().lease().eviction_deadline().is_some());
    assert!(!drain.is_finished());
    drop(held);
    bounded(drain).await.expect("drained");
    app.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_leaps_by_years_evicts_once_and_serves_on() {
    let app = App::of::<Idle>().await;
    bounded(app.get("/t/a")).await.assert_ok("ok");
    for _ in 0..3 {
        tokio::time::advance(20 * YEAR).await;
        settle().await;
        bounded(app.get("/t/a")).await.assert_ok("ok");
    }
    assert_eq!(app.host::<Idle>().len(), 1);
    app.shutdown().await;
}

#[test]
fn options_beyond_reason_are_refused_or_kept_in_range() {
    let build = |options: HostOptions| {
        PinnedWorker::builder()
            .host_with::<Idle>(options.namespace("/t"))
            .build()
    };
    let forever = Duration::MAX;
    for options in [
        HostOptions::new().idle_timeout(forever),
        HostOptions::new().detached_timeout(forever),
        HostOptions::new().sweep_interval(forever),
        HostOptions::new().turn_timeout(forever),
        HostOptions::new().activation_queue_deadline(forever),
        HostOptions::new().max_concurrent_activations(usize::MAX),
        HostOptions::new().max_instances(0),
    ] {
        assert!(build(options.clone()).is_err(), "{options:?}");
    }
    assert!(build(HostOptions::new().max_instances(usize::MAX)).is_ok());
    assert!(build(HostOptions::new().max_waiting(usize::MAX)).is_ok());
}
