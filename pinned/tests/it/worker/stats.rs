//! `GET /_pinned/stats`.

use serde_json::Value;

use crate::app::{App, pass};
use crate::scene::{Actor, Scene, actors, quick, seconds};
use crate::wind_down::begin_drain;

async fn stats(app: &App) -> Value {
    let secret = app.worker.secret();
    let reply = app
        .get("/_pinned/stats")
        .header("pinboard-proxy-secret", secret)
        .send()
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[tokio::test(start_paused = true)]
async fn the_stats_are_for_those_who_know_the_secret() {
    // W10.1, W2.6
    let app = App::start(Scene::default().worker(quick())).await;
    assert_eq!(app.worker.secret().len(), 64);
    let wrong = "0".repeat(64);
    for secret in [None, Some(""), Some("short"), Some(&*wrong)] {
        let request = app.get("/_pinned/stats");
        let request = match secret {
            Some(secret) => request.header("pinboard-proxy-secret", secret),
            None => request,
        };
        request
            .send()
            .await
            .assert_error(403, "invalid proxy secret");
    }
    let garbled = app
        .get("/_pinned/stats")
        .header("pinboard-attestation", "a.b.c")
        .send()
        .await;
    garbled.assert_error(403, "invalid proxy secret");
    stats(&app).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_of_the_session_opens_the_stats_too() {
    // W10.1, W8.6
    let app = App::start(Scene::default().placed_worker(quick())).await;
    let reply = app.get("/_pinned/stats").attested().send().await;
    assert_eq!(reply.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_stats_tell_of_the_worker_its_hosts_and_every_instance() {
    // W10.3
    let scene = Scene::default();
    let builder = scene
        .worker(quick())
        .host_with::<Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    app.get("/actors/a").text().await;
    app.get("/others/b").text().await;
    actors(&app).abort("a");
    pass(1_500).await;
    let stats = stats(&app).await;
    assert_eq!(stats["draining"], false);
    assert_eq!(
        (&stats["leaseFlaps"], &stats["reregistrations"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        stats["namespaces"]["/actors"],
        serde_json::json!({ "activations": 1, "evictions": 1 })
    );
    assert_eq!(
        stats["namespaces"]["/others"],
        serde_json::json!({ "activations": 1, "evictions": 0 })
    );
    let rows = stats["instances"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["namespace"], &rows[0]["id"]),
        (&"/others".into(), &"b".into())
    );
    assert!(rows[0]["idleMs"].as_u64() >= Some(1_500));
    assert!(rows[0]["activatedAt"].as_u64() > Some(1_600_000_000_000));
    assert!(stats["process"]["uptimeMs"].as_u64() >= Some(1_500));
}

#[tokio::test(start_paused = true)]
async fn a_row_counts_streams_as_connections_and_the_rest_as_tasks() {
    // W10.4
    let scene = Scene::default();
    for place in ["work", "task", "stream"] {
        scene.hold(place);
    }
    let app = App::start(scene.worker(quick())).await;
    let _work = app.post("/actors/a/work").begin().await;
    app.post("/actors/a/task").text().await;
    let _body = crate::scene::open(&app, "/actors/a/stream").await;
    let _socket = app
        .get("/actors/a/socket")
        .connect()
        .await
        .expect("a socket");
    pass(3_000).await;
    let row = &stats(&app).await["instances"][0];
    assert_eq!((&row["connections"], &row["tasks"]), (&2.into(), &2.into()));
}

#[tokio::test(start_paused = true)]
async fn a_cold_instance_has_a_row_without_a_time_of_activation() {
    // W10.4
    let scene = Scene::default();
    let authorizer = scene.hold("authorize");
    let app = App::start(scene.worker(quick())).await;
    let first = app.get("/actors/a").begin().await;
    let row = &stats(&app).await["instances"][0];
    assert_eq!((&row["id"], row.get("activatedAt")), (&"a".into(), None));
    authorizer.open();
    first.await.expect("an answer").assert_ok("here");
    assert!(
        stats(&app).await["instances"][0]
            .get("activatedAt")
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn the_stats_say_who_holds_a_drain_up() {
    // W10.3
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let _work = app.post("/actors/a/work").begin().await;
    app.get("/actors/b").text().await;
    let _drain = begin_drain(&app.worker, None).await;
    let stats = stats(&app).await;
    assert_eq!(
        (&stats["draining"], &stats["instances"][0]["id"]),
        (&true.into(), &"a".into())
    );
    assert_eq!(stats["instances"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn flaps_of_the_lease_are_counted() {
    // W10.3, W7.4
    let app = App::start(Scene::default().worker(quick())).await;
    app.worker.lease().renewed(seconds(9), None);
    pass(4_100).await;
    assert_eq!(stats(&app).await["leaseFlaps"], 1);
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn the_first_share_of_a_processor_is_zero() {
    // W10.4
    let app = App::start(Scene::default().worker(quick())).await;
    let process = stats(&app).await["process"].clone();
    assert_eq!(process["cpuPercent"], 0.0);
    assert!(process["rssBytes"].as_u64() > Some(1_000_000));
}
