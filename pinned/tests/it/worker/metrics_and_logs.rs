//! The names and moments of metrics (W15) and log events (W16) that exist in local mode.
//!
//! - W15, `stream_aclose`: with the streams. `sweep` and `construct`: nothing outside the product can cause them, but for
//!   a request after the shutdown.

use std::time::Duration;

use pinned::lease::LeaseSettings;

use crate::app::{App, pass, settle};
use crate::observe::{Logs, Metrics};
use crate::scene::{Scene, actors, quick, seconds};
use crate::wind_down::begin_drain;

#[tokio::test(start_paused = true)]
async fn instances_are_counted_as_they_come_and_go() {
    // W15, H4.10, H11.10
    let metrics = Metrics::capture();
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    for id in ["a", "b", "c"] {
        app.get(&format!("/actors/{id}")).text().await;
    }
    assert_eq!(metrics.value("pinned_instance_activations_total"), 3.0);
    assert_eq!(metrics.value("pinned_active_instances"), 3.0);
    actors(&app).abort("a");
    settle().await;
    assert_eq!(metrics.value("pinned_instance_evictions_total"), 1.0);
    assert_eq!(metrics.value("pinned_instance_aborts_total"), 1.0);
    assert_eq!(metrics.value("pinned_active_instances"), 2.0);
    pass(12_000).await;
    assert_eq!(metrics.value("pinned_instance_evictions_total"), 3.0);
    assert_eq!(metrics.value("pinned_instance_aborts_total"), 1.0);
    assert_eq!(metrics.value("pinned_active_instances"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_discarded_cold_instance_counts_an_eviction_and_no_live_one() {
    // H11.10, H2.20, W15.2
    let metrics = Metrics::capture();
    let scene = Scene::default();
    scene.fail("authorize");
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a")
        .send()
        .await
        .assert_error(503, "authorization failed");
    settle().await;
    assert_eq!(metrics.value("pinned_instance_evictions_total"), 1.0);
    assert_eq!(metrics.value("pinned_instance_activations_total"), 0.0);
    assert_eq!(metrics.value("pinned_active_instances"), 0.0);
    assert_eq!(
        metrics.value("pinned_request_failures_total{phase=auth,transport=http}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn failed_setups_and_requests_after_the_end_are_counted() {
    // W15, H4.6, H3.1
    let metrics = Metrics::capture();
    let scene = Scene::default();
    scene.fail("setup");
    let app = App::start(scene.worker(quick())).await;
    assert_eq!(app.get("/actors/a").send().await.status, 500);
    assert_eq!(
        app.get("/actors/a/socket").refused_socket().await.status,
        403
    );
    assert_eq!(
        metrics.value("pinned_request_failures_total{phase=lifespan,transport=http}"),
        1.0
    );
    assert_eq!(
        metrics.value("pinned_request_failures_total{phase=lifespan,transport=websocket}"),
        1.0
    );
    app.shutdown().await;
    assert_eq!(app.get("/actors/a").send().await.status, 500);
    assert_eq!(
        metrics.value("pinned_request_failures_total{phase=construct,transport=http}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn refusals_count_no_failure_but_a_sample() {
    // W15.2, H5.9
    let metrics = Metrics::capture();
    let app = App::start(Scene::default().worker(quick().max_instances(1))).await;
    app.get("/actors/a").text().await;
    app.get("/actors/b")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
    app.get("/actors/%24")
        .send()
        .await
        .assert_error(400, "id must contain only [A-Za-z0-9._~-]");
    assert_eq!(
        metrics.value("pinned_request_duration_seconds{namespace=/actors}"),
        2.0
    );
    for phase in ["construct", "auth", "lifespan"] {
        let name = format!("pinned_request_failures_total{{phase={phase},transport=http}}");
        assert_eq!(metrics.value(&name), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_shows_in_its_gauge_its_log_and_its_callbacks() {
    // W15, W16, W7.4, W7.5, W7.6
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    let app = App::start(Scene::default().worker(quick())).await;
    assert_eq!(metrics.value("pinned_lease_healthy"), 1.0);
    let settings = LeaseSettings::new()
        .on_unhealthy(|| -> () { panic!("told to") })
        .on_restored(|| -> () { panic!("told to") });
    app.worker
        .lease()
        .configure(settings)
        .expect("valid settings");
    app.worker.lease().renewed(seconds(9), None);
    pass(4_100).await;
    assert_eq!(metrics.value("pinned_lease_healthy"), 0.0);
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=on_unhealthy}"),
        1.0
    );
    let warnings = logs.events("WARN", "lease unhealthy");
    assert_eq!((warnings.len(), warnings[0].field("flaps")), (1, "1"));
    app.worker.lease().renewed(seconds(9), None);
    assert_eq!(metrics.value("pinned_lease_healthy"), 1.0);
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=on_restored}"),
        1.0
    );
    assert_eq!(logs.events("INFO", "lease restored").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_life_of_an_instance_is_in_the_log() {
    // W16, H4.10
    let logs = Logs::capture();
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    logs.assert_one("INFO", "activated", "a");
    pass(12_000).await;
    assert_eq!(
        logs.assert_one("INFO", "evicting", "a").field("aborted"),
        "false"
    );
    app.get("/actors/b").text().await;
    actors(&app).abort("b");
    settle().await;
    assert_eq!(
        logs.assert_one("INFO", "aborting", "b").field("aborted"),
        "true"
    );
    logs.assert_none("ERROR");
}

#[tokio::test(start_paused = true)]
async fn drains_and_operator_requests_are_in_the_log() {
    // W16
    let logs = Logs::capture();
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let _work = app.post("/actors/a/work").begin().await;
    actors(&app).wind_down("a", Some(seconds(60)));
    actors(&app).wind_down("a", None);
    logs.assert_one("INFO", "operator wind-down", "a");
    logs.assert_one("INFO", "operator resume", "a");
    app.worker.server_drain(Some(None));
    app.worker.server_drain(None);
    let drain = begin_drain(&app.worker, Some(seconds(60))).await;
    app.worker.revoke_drain();
    drain.await.expect("revoked");
    assert_eq!(logs.events("INFO", "drain complete").len(), 0);
    begin_drain(&app.worker, Some(Duration::ZERO))
        .await
        .await
        .expect("drained");
    for (message, times) in [
        ("server drain begun", 1),
        ("server drain revoked", 1),
        ("drain begun", 2),
        ("drain revoked", 1),
        ("drain complete", 1),
    ] {
        assert_eq!(logs.events("INFO", message).len(), times, "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_errors_in_the_log_with_the_instance_they_concern() {
    // W16, H7.2, H2.15
    let logs = Logs::capture();
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    scene.fail("task");
    app.post("/actors/a/task").text().await;
    settle().await;
    logs.assert_one("ERROR", "a background task failed", "a");
    scene.fail("authorize");
    app.get("/actors/a")
        .send()
        .await
        .assert_error(503, "authorization failed");
    assert_eq!(
        logs.assert_one("ERROR", "the authorizer failed", "a")
            .field("transport"),
        "http"
    );
    assert_eq!(logs.events("ERROR", "").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn local_mode_says_that_it_is_dev_mode() {
    let logs = Logs::capture();
    let _app = App::start(Scene::default().worker(quick())).await;
    assert_eq!(logs.events("WARN", "DEV MODE").len(), 1);
}
