//! Dispatch and cancellation (H5).
//!
//! H5.2's second half, one handler at a time between two awaits, is a rule of one event loop: here threads are real, and
//! turns take its place (`turns`). H5.4 is design's: a handler runs to its end although its client went away.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pinned::{AuthRejected, Connection, Context, Denied, HostOptions, lifespan, pinned_api, route};

use crate::observe::Metrics;
use crate::rig::{App, Probe, millis, pass, secs, settle};

struct Desk {
    probe: Probe,
    busy: bool,
}

#[pinned_api]
impl Desk {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        probe.note("setup");
        Self { probe, busy: false }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.probe.note("teardown");
    }

    #[authorize]
    async fn authorize(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
        match conn.uri().query() {
            Some("denied") => Err(AuthRejected::new("no").into()),
            Some("slow") => {
                let probe = ctx.state::<Probe>().expect("a probe");
                probe.gate("resolver").await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[route::get("/")]
    async fn read(&self) -> &'static str {
        self.probe.note("read");
        if self.busy { "busy" } else { "free" }
    }

    #[route::get("/wait/{gate}")]
    async fn wait(&self, Path(gate): Path<String>) -> String {
        let _cleanup = self.probe.cleanup(format!("left {gate}"));
        self.probe.gate(&gate).await;
        gate
    }

    #[route::get("/work/{gate}")]
    async fn work(&mut self, Path(gate): Path<String>) -> String {
        self.busy = true;
        self.probe.gate(&gate).await;
        self.busy = false;
        self.probe.note("worked");
        gate
    }

    #[route::get("/panic")]
    async fn panic(&mut self) {
        self.busy = true;
        panic!("with a secret");
    }

    #[route::get("/panic/{gate}")]
    async fn panic_later(&mut self, Path(gate): Path<String>) {
        self.busy = true;
        self.probe.gate(&gate).await;
        panic!("with a secret");
    }

    #[route::get("/abort")]
    async fn abort(&self, ctx: Context) -> &'static str {
        ctx.abort();
        "still here"
    }

    #[route::get("/abort/{gate}")]
    async fn abort_and_wait(&self, ctx: Context, Path(gate): Path<String>) {
        ctx.abort();
        self.probe.gate(&gate).await;
    }

    #[route::get("/wind-down")]
    async fn wind_down(&self, ctx: Context) {
        ctx.lease().wind_down(None);
    }

    #[route::get("/relay")]
    async fn relay(&self) -> Response {
        let refused = [("pinned-refusal", "draining"), ("retry-after", "7")];
        (StatusCode::SERVICE_UNAVAILABLE, refused, "not me").into_response()
    }

    #[route::get("/number/{n}")]
    async fn number(&self, Path(n): Path<u32>) -> String {
        n.to_string()
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_in_its_resolver_when_the_close_began_does_not_run() {
    // H5.1, E7
    let app = App::of::<Desk>().await;
    app.get("/t/a").await.assert_ok("free");
    let slow = app.client("/t/a?slow");
    app.probe.seen("at resolver").await;
    app.get("/t/a/wind-down").await.assert_ok("");
    app.probe.seen("teardown").await;
    app.probe.open("resolver");
    slow.answer().await.assert_retry("instance closing; retry");
    assert_eq!(app.probe.count("read"), 1);
    app.get("/t/a").await.assert_ok("free");
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_to_one_instance_interleave() {
    // H5.2
    let app = App::of::<Desk>().await;
    let first = app.client("/t/a/wait/one");
    let second = app.client("/t/a/wait/two");
    app.probe.seen("at one").await;
    app.probe.seen("at two").await;
    app.probe.open("two");
    second.answer().await.assert_ok("two");
    assert!(!first.is_answered());
    app.probe.open("one");
    first.answer().await.assert_ok("one");
    assert_eq!(app.probe.count("setup"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abort_cuts_a_running_handler_off_after_its_cleanup() {
    // H5.3
    let app = App::of::<Desk>().await;
    let waiting = app.client("/t/a/wait/never");
    app.probe.seen("at never").await;
    app.host::<Desk>().abort("a");
    waiting.answer().await.assert_aborted();
    app.probe.seen("teardown").await;
    assert!(app.probe.index("left never") < app.probe.index("teardown"));
    app.get("/t/a").await.assert_ok("free");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_client_left_runs_to_its_end() {
    // H5.4; a state that is set before and cleared after a wait is never left half done
    let app = App::of::<Desk>().await;
    let client = app.client("/t/a/work/gate");
    app.probe.seen("at gate").await;
    client.leave().await;
    let next = app.client("/t/a");
    settle().await;
    assert!(!next.is_answered(), "it holds its turn until it is done");
    app.probe.open("gate");
    next.answer().await.assert_ok("free");
    assert!(app.probe.has("worked"));
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_borrowed_is_given_back_although_its_client_left() {
    // H5.4; such as a pooled connection in the middle of a transaction
    let app = App::of::<Desk>().await;
    let client = app.client("/t/a/wait/gate");
    app.probe.seen("at gate").await;
    client.leave().await;
    assert!(!app.probe.has("left gate"));
    app.probe.open("gate");
    app.probe.seen("left gate").await;
    settle().await;
    assert_eq!(app.probe.count("left gate"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_client_left_is_still_cut_off_by_an_abort() {
    // H5.3
    let app = App::of::<Desk>().await;
    let client = app.client("/t/a/work/never");
    app.probe.seen("at never").await;
    client.leave().await;
    app.host::<Desk>().abort("a");
    app.empty::<Desk>().await;
    assert!(!app.probe.has("worked"));
    app.get("/t/a").await.assert_ok("free");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_abort_its_instance_and_still_answer() {
    // H5.5
    let app = App::of::<Desk>().await;
    app.get("/t/a/abort").await.assert_ok("still here");
    app.empty::<Desk>().await;
    app.get("/t/a").await.assert_ok("free");
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_aborts_its_instance_and_waits_is_cut_off() {
    // H5.5
    let app = App::of::<Desk>().await;
    app.get("/t/a/abort/never").await.assert_aborted();
}

#[tokio::test(start_paused = true)]
async fn a_panic_answers_500_and_the_next_request_starts_afresh() {
    let app = App::of::<Desk>().await;
    for path in ["/t/a/panic", "/t/b/panic/open"] {
        app.probe.open("open");
        let answer = app.get(path).await;
        assert_eq!(answer.status, 500);
        // H1.12
        assert_eq!(answer.text, "Internal Server Error");
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/plain")
        );
    }
    app.get("/t/a").await.assert_ok("free");
    app.get("/t/b").await.assert_ok("free");
    assert_eq!(app.probe.count("setup"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_panic_after_a_wait_aborts_whoever_runs_beside_it() {
    let app = App::of::<Desk>().await;
    let panicking = app.client("/t/a/panic/gate");
    app.probe.seen("at gate").await;
    let waiting = app.client("/t/a");
    settle().await;
    app.probe.open("gate");
    assert_eq!(panicking.answer().await.status, 500);
    // It waited for its turn and has not run.
    waiting
        .answer()
        .await
        .assert_retry("instance closing; retry");
    assert!(!app.probe.has("read"));
    app.get("/t/a").await.assert_ok("free");
}

#[tokio::test(start_paused = true)]
async fn activity_is_stamped_at_the_end_of_a_handler() {
    // H5.6
    let options = HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1));
    let app = App::with::<Desk>(options).await;
    let client = app.client("/t/a/wait/gate");
    app.probe.seen("at gate").await;
    pass(secs(8)).await;
    app.probe.open("gate");
    client.answer().await.assert_ok("gate");
    pass(secs(5)).await;
    // Neither an arrival nor a denial counts as activity.
    assert_eq!(app.get("/t/a?denied").await.status, 401);
    pass(secs(4)).await;
    assert!(!app.probe.has("teardown"));
    pass(secs(3)).await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_settlement_sweeps_at_once() {
    // H5.7
    let app = App::with::<Desk>(HostOptions::new().sweep_interval(secs(1_000))).await;
    let client = app.client("/t/a/wait/gate");
    app.probe.seen("at gate").await;
    app.get("/t/a/wind-down").await.assert_ok("");
    pass(secs(1)).await;
    assert!(!app.probe.has("teardown"), "work keeps it");
    app.probe.open("gate");
    client.answer().await.assert_ok("gate");
    settle().await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_longer_than_the_idle_timeout_leaves_its_instance_alive() {
    // H5.8, E33
    let options = HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1));
    let app = App::with::<Desk>(options).await;
    let client = app.client("/t/a/wait/gate");
    app.probe.seen("at gate").await;
    pass(secs(60)).await;
    app.probe.open("gate");
    client.answer().await.assert_ok("gate");
    pass(secs(5)).await;
    app.get("/t/a").await.assert_ok("free");
    assert_eq!(app.probe.count("setup"), 1);
}

#[tokio::test(start_paused = true)]
async fn each_request_that_reached_admission_is_sampled_once() {
    // H5.9
    let metrics = Metrics::capture();
    let samples = || metrics.value("pinned_request_duration_seconds{namespace=/t}");
    let app = App::with::<Desk>(HostOptions::new().max_instances(1)).await;
    let client = app.client("/t/a/wait/gate");
    app.probe.seen("at gate").await;
    pass(secs(3)).await;
    assert_eq!(samples(), 0.0, "not before the handler ends");
    app.probe.open("gate");
    client.answer().await.assert_ok("gate");
    assert_eq!(samples(), 1.0);
    assert_eq!(app.get("/t/a?denied").await.status, 401);
    assert_eq!(samples(), 2.0, "a denial");
    app.get("/t/b")
        .await
        .assert_retry("instance capacity reached; retry");
    assert_eq!(samples(), 3.0, "a refused admission");
    assert_eq!(app.get("/t/a/panic").await.status, 500);
    assert_eq!(samples(), 4.0, "a panic");
    app.empty::<Desk>().await;
    assert_eq!(app.get("/t/$/wait/gate").await.status, 400);
    assert_eq!(app.get("/t/a/number/x").await.status, 400);
    assert_eq!(samples(), 4.0, "neither a bad id nor a bad argument");
}

#[tokio::test(start_paused = true)]
async fn a_handler_cannot_promise_that_it_has_not_run() {
    // H3.5: the marker is the host's own; a handler that relays one would be run again
    let app = App::of::<Desk>().await;
    let answer = app.get("/t/a/relay").await;
    assert_eq!((answer.status, answer.text.as_str()), (503, "not me"));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert_eq!(answer.header("pinned-refusal"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_leave_at_any_moment_leave_nothing_behind() {
    // Promise 4: whatever a client leaves in the middle of, its instance can still be evicted.
    let options = HostOptions::new()
        .idle_timeout(millis(30))
        .sweep_interval(millis(10))
        .max_concurrent_activations(4);
    let app = App::with::<Desk>(options).await;
    app.probe.open("open");
    app.probe.open("resolver");
    let rng = pinned::domain::Domain::real_seeded(5)
        .rng("leave")
        .expect("a label");
    let paths = [
        "",
        "/wait/open",
        "/work/open",
        "?slow",
        "?denied",
        "/abort",
        "/number/x",
    ];
    for round in 0..400_u64 {
        let id = rng.u64() % 4;
        let path = paths[usize::try_from(rng.u64() % paths.len() as u64).expect("small")];
        let client = app.client(&format!("/t/{id}{path}"));
        if round % 3 == 0 {
            client.answer().await;
        } else {
            let leave_after = std::time::Duration::from_micros(rng.u64() % 200);
            crate::rig::domain().sleep(leave_after).await;
            client.hang_up();
        }
    }
    app.empty::<Desk>().await;
    assert_eq!(app.probe.count("setup"), app.probe.count("teardown"));
}
