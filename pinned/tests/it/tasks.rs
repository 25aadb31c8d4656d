//! Background tasks (H7).
//!
//! H7.4, durable work, stands in `close`: a state store does it, and a task cannot.

use axum::extract::Path;
use pinned::{
    BoxError, Context, EvictionRequested, HostOptions, Instance, lifespan, pinned_api, route,
};

use crate::observe::Logs;
use crate::rig::{App, Probe, bounded, domain, millis, pass, secs, settle};

struct Mill {
    probe: Probe,
    ctx: Context,
}

#[derive(Debug, thiserror::Error)]
#[error("gave up")]
struct GaveUp(#[source] EvictionRequested);

#[pinned_api]
impl Mill {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        probe.note("setup");
        if ctx.id() == "keen" {
            let task_probe = probe.clone();
            ctx.spawn(async move { task_probe.gate("keen").await });
        }
        Self { probe, ctx }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.probe.note("teardown");
        // A task that is spawned during the close (H7.3).
        let probe = self.probe.clone();
        let late = self.ctx.spawn(async move {
            let _cleanup = probe.cleanup("left late");
            probe.gate("late").await;
        });
        drop(late);
    }

    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "here"
    }

    #[route::get("/wind-down")]
    async fn wind_down(&self) {
        self.ctx.lease().wind_down(None);
    }

    /// A task that ends as its gate says: in its time, at an error, or at a panic.
    #[route::get("/spawn/{gate}")]
    async fn spawn(&self, Path(gate): Path<String>) {
        let probe = self.probe.clone();
        self.ctx.spawn(async move {
            let _cleanup = probe.cleanup(format!("left {gate}"));
            probe.gate(&gate).await;
            match gate.as_str() {
                "fail" => Err(BoxError::from("no more grain")),
                "panic" => panic!("broken stone"),
                _ => Ok(()),
            }
        });
    }

    /// A task that wants the turn which this handler holds until its gate opens.
    #[route::get("/wait/{gate}")]
    async fn wait(&self, this: Instance<Self>, Path(gate): Path<String>) {
        let probe = self.probe.clone();
        self.ctx.spawn(async move {
            probe.note("wants a turn");
            this.write().await.map(drop)
        });
        self.probe.gate(&gate).await;
    }

    /// Tasks that yield to an eviction, plainly and with a cause, each after a gate of its own.
    #[route::get("/yield")]
    async fn yielding(&self) {
        let (probe, ctx) = (self.probe.clone(), self.ctx.clone());
        self.ctx.spawn(async move {
            loop {
                probe.gate("first").await;
                ctx.eviction_checkpoint().await?;
                probe.note("went on");
                probe.shut("first");
            }
            #[allow(unreachable_code, reason = "gives the block its type")]
            Ok::<(), EvictionRequested>(())
        });
        let (probe, ctx) = (self.probe.clone(), self.ctx.clone());
        self.ctx.spawn(async move {
            probe.gate("second").await;
            ctx.eviction_checkpoint().await.map_err(GaveUp)
        });
    }
}

fn short() -> HostOptions {
    HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1))
}

#[tokio::test(start_paused = true)]
async fn a_task_keeps_its_instance_and_its_end_is_activity() {
    // H7.1
    let app = App::with::<Mill>(short()).await;
    app.get("/t/a/spawn/grind").await.assert_ok("");
    pass(secs(60)).await;
    assert_eq!(app.worker().stats()["instances"][0]["tasks"], 1);
    app.get("/t/a").await.assert_ok("here");
    pass(secs(60)).await;
    assert_eq!(app.probe.count("setup"), 1);
    app.probe.open("grind");
    pass(secs(9)).await;
    assert!(!app.probe.has("teardown"));
    pass(secs(3)).await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_setup_is_tracked_as_well() {
    // H7.1
    let app = App::with::<Mill>(short()).await;
    app.get("/t/keen").await.assert_ok("here");
    pass(secs(60)).await;
    assert_eq!(app.host::<Mill>().len(), 1);
    app.probe.open("keen");
    app.empty::<Mill>().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_cancels_a_task_and_waits_for_its_cleanup() {
    // H7.1, H11.4
    let logs = Logs::capture();
    let app = App::of::<Mill>().await;
    app.get("/t/a/spawn/grind").await.assert_ok("");
    app.probe.seen("at grind").await;
    app.host::<Mill>().abort("a");
    app.empty::<Mill>().await;
    assert!(app.probe.index("left grind") < app.probe.index("teardown"));
    // H7.2
    logs.assert_none("ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_turn_at_an_abort_is_cancelled_and_has_not_failed() {
    // H7.2
    let logs = Logs::capture();
    let app = App::of::<Mill>().await;
    let client = app.client("/t/a/wait/never");
    app.probe.seen("wants a turn").await;
    settle().await;
    app.host::<Mill>().abort("a");
    client.answer().await.assert_aborted();
    app.empty::<Mill>().await;
    logs.assert_none("ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_lets_a_task_end() {
    // H7.1, H10.7
    let app = App::of::<Mill>().await;
    app.get("/t/a/spawn/grind").await.assert_ok("");
    app.probe.seen("at grind").await;
    app.get("/t/a/wind-down").await.assert_ok("");
    pass(secs(600)).await;
    app.get("/t/a").await.assert_ok("here");
    app.probe.open("grind");
    settle().await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_logged_and_harms_nobody() {
    // H7.2
    let logs = Logs::capture();
    let app = App::of::<Mill>().await;
    for (gate, error) in [
        ("fail", "no more grain"),
        ("panic", "panicked: broken stone"),
    ] {
        app.probe.open(gate);
        app.get(&format!("/t/a/spawn/{gate}")).await.assert_ok("");
        app.probe.seen(&format!("left {gate}")).await;
        settle().await;
        let events = logs.events("ERROR", "a background task failed");
        let event = events.last().expect("an error");
        assert_eq!(event.field("error"), error);
        assert_eq!(event.field("instance_id"), "a");
        assert!(event.field("class").ends_with("Mill"), "{event:?}");
    }
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 1);
    assert_eq!(logs.events("ERROR", "").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_spawned_during_the_close_is_cancelled_at_its_end() {
    // H7.3
    let app = App::placed::<Mill>(short()).await;
    app.get("/t/a").await.assert_ok("here");
    app.placements().hold();
    // A plain close cuts nothing off before its last stage.
    bounded(app.placements().parked()).await;
    assert!(app.probe.has("at late"));
    assert!(!app.probe.has("left late"));
    app.placements().release();
    app.empty::<Mill>().await;
    assert!(app.probe.has("left late"));
}

#[tokio::test(start_paused = true)]
async fn tasks_yield_to_an_eviction_one_after_the_other_and_the_release_waits_for_the_last() {
    // H7.5
    let logs = Logs::capture();
    let app = App::placed::<Mill>(HostOptions::new()).await;
    app.get("/t/a/yield").await.assert_ok("");
    app.probe.seen("at second").await;
    app.probe.open("first");
    app.probe.seen("went on").await;
    app.get("/t/a/wind-down").await.assert_ok("");
    app.probe.open("first");
    settle().await;
    assert_eq!(app.probe.count("went on"), 1);
    assert!(!app.probe.has("teardown"));
    assert_eq!(app.placements().requested(), []);
    app.probe.open("second");
    app.empty::<Mill>().await;
    assert_eq!(app.placements().released().len(), 1);
    // Cancelled, not failed.
    logs.assert_none("ERROR");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_tasks_that_meet_aborts_leave_nothing_behind() {
    let options = HostOptions::new()
        .idle_timeout(millis(20))
        .sweep_interval(millis(5));
    let app = std::sync::Arc::new(App::with::<Mill>(options).await);
    for gate in ["grind", "late"] {
        app.probe.open(gate);
    }
    let callers: Vec<_> = (0..4_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("tasks")
                    .expect("a label");
                for _ in 0..100 {
                    let gate = if rng.u64().is_multiple_of(3) {
                        "never"
                    } else {
                        "grind"
                    };
                    let status = app.get(&format!("/t/a/spawn/{gate}")).await.status;
                    assert!(matches!(status, 200 | 503), "{status}");
                    if rng.u64().is_multiple_of(6) {
                        app.host::<Mill>().abort("a");
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever").expect("no panic");
    }
    app.host::<Mill>().abort("a");
    let empty = domain().timeout(secs(30), app.empty::<Mill>()).await;
    empty.expect("no count was leaked");
    assert_eq!(app.probe.count("setup"), app.probe.count("teardown"));
}
