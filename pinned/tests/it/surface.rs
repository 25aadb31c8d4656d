//! What an instance sees of itself (H15).
//!
//! - H15.1, frontier: waiting for one is the flush of the close tests.
//! - H15.5: the seam is a trait of the crate; that it suffices is shown by every host and by the hostless test instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinned::InstanceLeaseSettings;
use pinned::lease::LeaseSettings;

use crate::app::{App, pass, settle};
use crate::scene::{Scene, get, quick, seconds};

#[tokio::test(start_paused = true)]
async fn the_context_offers_what_an_instance_needs() {
    // H15.1, H15.4, H12.8
    let scene = Scene::default();
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").epoch(6).text().await;
    let ctx = scene.context();
    assert_eq!((ctx.id(), ctx.namespace()), ("a", "/actors"));
    assert_eq!(ctx.placement_epoch(), Ok(6));
    assert_eq!(ctx.domain().token_hex(8).len(), 16);
    ctx.eviction_checkpoint().await.expect("not winding down");
    assert_eq!(ctx.spawn(async {}).await, Ok(()));
    let answer = ctx
        .cluster()
        .get("/actors/b")
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status(), 200);
    ctx.lease().wind_down(None);
    ctx.eviction_checkpoint().await.expect_err("winding down");
}

#[tokio::test(start_paused = true)]
async fn with_a_state_store_the_frontier_confirms_what_was_enlisted() {
    // H15.1, D13.6
    let scene = Scene::default();
    let store = pinned::durability::MemoryStore::new();
    let app = App::start(scene.worker(quick()).store(store)).await;
    app.get("/actors/a").send().await.assert_ok("here");
    let frontier = scene.context().frontier().expect("a state store");
    frontier.wait().await.expect("nothing is enlisted");
    let done = pinned_testing::Gate::new();
    let passed = done.clone();
    let receipt = frontier
        .enlist(async move {
            passed.pass().await;
            Ok::<_, std::io::Error>(())
        })
        .expect("open");
    assert_eq!((receipt.position(), frontier.position()), (1, 1));
    done.open();
    receipt.await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn without_a_state_store_frontier_and_epoch_are_errors_that_name_it() {
    // H15.1, H12.8
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").epoch(6).text().await;
    let error = scene.context().placement_epoch().expect_err("no store");
    assert!(error.to_string().contains("state store"));
    assert!(scene.context().frontier().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_epoch_without_a_header_is_zero_and_follows_the_placement_up() {
    // H12.8, H3.11
    let scene = Scene::default();
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    assert_eq!(scene.context().placement_epoch(), Ok(0));
    get(&app, "/actors/a").epoch(3).text().await;
    assert_eq!(scene.context().placement_epoch(), Ok(3));
    assert_eq!(scene.steps().last().map(String::as_str), Some("epoch 3"));
}

#[tokio::test(start_paused = true)]
async fn the_lease_view_shows_the_workers_lease() {
    // H15.2, W7.1, W7.3, W7.9
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    let lease = scene.context().lease();
    assert!(lease.healthy() && !lease.expired());
    assert_eq!((lease.expires_at(), lease.buffer()), (None, seconds(5)));
    assert_eq!(
        (lease.winding_down(), lease.eviction_deadline()),
        (false, None)
    );

    app.worker.lease().renewed(seconds(9), None);
    let left = lease
        .expires_at()
        .expect("acknowledged")
        .duration_since(app.worker.domain().now());
    assert!(left.expect("ahead") > seconds(8));
    pass(4_100).await;
    assert!(!lease.healthy() && !lease.expired());
    pass(5_000).await;
    assert!(lease.expired());
}

#[tokio::test(start_paused = true)]
async fn lease_settings_are_the_workers_and_the_callbacks_are_the_instances() {
    // H15.2, W7.7
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    for id in ["a", "b"] {
        app.get(&format!("/actors/{id}")).text().await;
    }
    let b = scene.context();
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = |times: usize| {
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(times, Ordering::Relaxed);
        }
    };
    let idle = Arc::clone(&calls);
    let settings = InstanceLeaseSettings::new()
        .buffer(seconds(2))
        .on_unhealthy(counts(1))
        .on_restored(counts(10))
        .on_idle(move || {
            idle.fetch_add(100, Ordering::Relaxed);
        });
    b.lease().configure(settings).expect("valid settings");
    assert_eq!(app.worker.lease().buffer(), seconds(2));
    // What is not named stays.
    b.lease()
        .configure(InstanceLeaseSettings::new().on_wind_down(|_| {}))
        .expect("valid settings");
    assert_eq!(app.worker.lease().buffer(), seconds(2));

    app.worker.lease().renewed(seconds(6), None);
    pass(4_100).await;
    app.worker.lease().renewed(seconds(3_600), None);
    assert_eq!(calls.load(Ordering::Relaxed), 11);
    // The last setter wins, whichever instance or worker that is.
    app.worker
        .lease()
        .configure(LeaseSettings::new().on_unhealthy(|| {}))
        .expect("valid settings");

    // `b` alone has an `on_idle`: `a` is evicted.
    pass(12_000).await;
    assert_eq!(calls.load(Ordering::Relaxed), 111);
    let actors = crate::scene::actors(&app);
    assert_eq!((actors.len(), actors.evictions()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_buffer_of_zero_changes_nothing() {
    // H15.2, W7.7
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    let settings = InstanceLeaseSettings::new()
        .buffer(Duration::ZERO)
        .on_idle(|| {});
    assert!(scene.context().lease().configure(settings).is_err());
    assert_eq!(app.worker.lease().buffer(), seconds(5));
    pass(12_000).await;
    assert_eq!(crate::scene::actors(&app).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_eviction_deadline_is_wall_time() {
    // H15.2
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let _work = app.post("/actors/a/work").begin().await;
    let lease = scene.context().lease();
    lease.wind_down(None);
    assert_eq!(
        (lease.winding_down(), lease.eviction_deadline()),
        (true, None)
    );
    lease.wind_down(Some(seconds(20)));
    assert_eq!(crate::scene::seconds_left(&scene.context()), Some(20));
    pass(5_000).await;
    assert_eq!(crate::scene::seconds_left(&scene.context()), Some(15));
}

#[tokio::test(start_paused = true)]
async fn the_stats_hook_adds_to_its_row_and_never_replaces_core_fields() {
    // H15.3, W10.5
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    let stats = app.worker.stats();
    let row = &stats["instances"][0];
    assert_eq!(
        (&row["mood"], &row["id"], &row["namespace"]),
        (&"calm".into(), &"a".into(), &"/actors".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_struct_without_a_stats_hook_has_a_bare_row() {
    // H15.3: a missing hook, and one that returns nothing, are empty.
    #[derive(Default)]
    struct Bare;
    #[pinned::pinned_api]
    impl Bare {
        #[pinned::route::get("/")]
        async fn here(&self) -> &'static str {
            "here"
        }
    }
    #[derive(Default)]
    struct Silent;
    #[pinned::pinned_api]
    impl Silent {
        #[stats]
        fn stats(&self) -> Option<u32> {
            None
        }

        #[pinned::route::get("/")]
        async fn here(&self) -> &'static str {
            "here"
        }
    }
    let builder = pinned::PinnedWorker::builder()
        .host::<Bare>("/bare")
        .host::<Silent>("/silent");
    let app = App::start(builder).await;
    app.get("/bare/a").text().await;
    app.get("/silent/a").text().await;
    settle().await;
    for row in app.worker.stats()["instances"].as_array().expect("rows") {
        let keys: Vec<_> = row.as_object().expect("a row").keys().cloned().collect();
        assert_eq!(
            keys,
            [
                "activatedAt",
                "connections",
                "id",
                "idleMs",
                "namespace",
                "tasks"
            ]
        );
    }
}
