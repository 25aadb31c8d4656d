//! The shutdown of a worker (H11.11, H11.14).

use pinned::Error;

use crate::app::{App, settle, spawn};
use crate::observe::Metrics;
use crate::scene::{Scene, actors, get, post, quick};

#[tokio::test(start_paused = true)]
async fn the_shutdown_closes_and_releases_everything() {
    // H11.11, H11.12
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.placed_worker(quick().release_placement_on_idle(false))).await;
    let busy = post(&app, "/actors/a/work").begin().await;
    get(&app, "/actors/b").text().await;
    app.shutdown().await;
    busy.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    let steps = scene.steps();
    for id in ["a", "b"] {
        assert!(
            steps.contains(&format!("release /actors/{id} none")),
            "{steps:?}"
        );
    }
    // H3.1
    assert_eq!(get(&app, "/actors/a").send().await.status, 500);
}

#[tokio::test(start_paused = true)]
async fn the_shutdown_goes_on_past_failures_and_reports_them_as_one() {
    // H11.11, H11.6
    let metrics = Metrics::capture();
    let scene = Scene::default();
    scene.fail("flush");
    let worker = scene
        .placed_worker(quick())
        .build()
        .expect("a valid worker");
    let running = worker.run_lifespan().await.expect("the first start");
    for id in ["a", "b"] {
        drop(
            worker
                .hosted::<crate::scene::Actor>()
                .expect("hosted")
                .read(id)
                .await
                .expect("a turn"),
        );
    }
    let Err(Error::Shutdown(mut failures)) = running.shutdown().await else {
        panic!("a failed flush has to surface");
    };
    failures.sort();
    assert_eq!(
        failures,
        [
            "/actors/a: flush was told to fail",
            "/actors/b: flush was told to fail"
        ]
    );
    assert_eq!(
        scene
            .steps()
            .iter()
            .filter(|step| *step == "teardown")
            .count(),
        2
    );
    assert_eq!(
        metrics.value("pinned_shutdown_failures_total{phase=directory}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_whose_future_is_dropped_has_begun_every_close() {
    // H11.11
    let scene = Scene::default();
    let builder = scene
        .worker(quick())
        .host_with::<crate::scene::Actor>(quick().namespace("/others"));
    let worker = builder.build().expect("a valid worker");
    let running = worker.run_lifespan().await.expect("the first start");
    let teardown = scene.hold("teardown");
    let hosts = ["/actors", "/others"]
        .map(|at| worker.hosted_at::<crate::scene::Actor>(at).expect("hosted"));
    for host in &hosts {
        drop(host.read("a").await.expect("a turn"));
    }
    let shutdown = spawn(running.shutdown());
    settle().await;
    shutdown.abort();
    teardown.open();
    settle().await;
    assert!(hosts.iter().all(|host| host.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_second_start_is_an_error_that_disturbs_nothing() {
    // H11.14
    let app = App::start(Scene::default().worker(quick())).await;
    app.get("/actors/a").text().await;
    assert!(matches!(
        app.worker.run_lifespan().await,
        Err(Error::AlreadyStarted)
    ));
    app.get("/actors/a").send().await.assert_ok("here");
    assert_eq!(actors(&app).evictions(), 0);
}

#[test]
fn an_instance_goes_with_its_runtime() {
    // Its close was launched and can never run: what it holds is not kept for the rest of the process.
    let scene = Scene::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let app = runtime.block_on(async {
        let app = App::start(scene.placed_worker(quick())).await;
        app.get("/actors/a").attested().text().await;
        app
    });
    assert!(scene.steps().contains(&"setup".to_owned()));
    drop(runtime);
    drop(app);
    assert_eq!(scene.held(), 0);
}
