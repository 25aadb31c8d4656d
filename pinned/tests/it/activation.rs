//! Activation (H4).
//!
//! H4.5 has no counterpart: setup returns the instance and teardown is a function of its own, so that neither can yield
//! twice. Trays (H4.1) come with their crate module. The type errors of H4.3 are compile errors here; its range is tested in
//! `configuration`.

use axum::extract::Path;
use pinned::ws::{SocketError, WebSocket, WebSocketUpgrade};
use pinned::{
    Connection, Context, Denied, HostOptions, Refusal, SetupError, SocketFailure, Unavailable,
    lifespan, pinned_api, route,
};

use crate::observe::Metrics;
use crate::rig::{App, Probe, bounded, millis, pass, secs, settle};

struct Archive {
    probe: Probe,
    ctx: Context,
}

fn probe(ctx: &Context) -> Probe {
    Probe::clone(&ctx.state().expect("a probe"))
}

#[pinned_api]
impl Archive {
    /// What it does is in the id: `slow-x` waits at its gate, `bad` fails, `torn` panics, `moved` is an HTTP error.
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        let (probe, id) = (probe(&ctx), ctx.id().to_owned());
        probe.note(format!("setup {id}"));
        if id.starts_with("slow") {
            let _cleanup = probe.cleanup(format!("left {id}"));
            probe.gate(&id).await;
        }
        if id.starts_with("eager") {
            ctx.lease().wind_down(None);
            ctx.lease().wind_down(Some(secs(60)));
        }
        if ctx.lease().winding_down() {
            probe.note(format!("winding down {id}"));
        }
        if !probe.is_open("healed") {
            match id.as_str() {
                "bad" | "slow-bad" => return Err(SetupError::new("with a secret")),
                "torn" => panic!("with a secret"),
                "moved" => return Err(SetupError::http(410, "moved")),
                _ => {}
            }
        }
        Ok(Self { probe, ctx })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        let id = self.ctx.id();
        self.probe.note(format!("teardown {id}"));
        self.ctx.lease().wind_down(None);
        self.ctx.abort();
        if id.starts_with("heavy") {
            self.probe.gate(id).await;
        }
        self.probe.note(format!("gone {id}"));
    }

    #[authorize]
    async fn authorize(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
        let probe = probe(ctx);
        conn.on_socket_failure(move |failure| {
            probe.note(format!("{failure:?}"));
            match failure {
                SocketFailure::Failed { message } => Some(format!("failed: {message}")),
                SocketFailure::Refused { message, .. } => Some(format!("refused: {message}")),
                _ => None,
            }
        });
        if conn.uri().query() == Some("accept") {
            conn.accept().await?;
        }
        Ok(())
    }

    #[route::get("/")]
    async fn read(&self) -> String {
        self.ctx.id().to_owned()
    }

    #[route::get("/wait/{gate}")]
    async fn wait(&self, Path(gate): Path<String>) {
        self.probe.gate(&gate).await;
    }

    #[route::get("/ask/{other}", auth = none)]
    async fn ask(&self, Path(other): Path<String>) -> String {
        let asked = self.ctx.cluster().get(format!("/t/{other}/")).send().await;
        asked.expect("an answer").text().await.expect("text")
    }

    #[route::websocket("/socket")]
    async fn socket(this: pinned::Instance<Self>, socket: WebSocket) -> Result<(), SocketError> {
        socket.send_text(this.id()).await
    }

    #[route::websocket("/upgrade")]
    async fn upgrade(_this: pinned::Instance<Self>, upgrade: WebSocketUpgrade) {
        drop(upgrade);
    }
}

#[tokio::test(start_paused = true)]
async fn ten_first_calls_share_one_activation() {
    // H4.1, E24
    let app = App::of::<Archive>().await;
    let clients: Vec<_> = (0..10).map(|_| app.client("/t/slow")).collect();
    app.probe.seen("at slow").await;
    settle().await;
    assert!(clients.iter().all(|client| !client.is_answered()));
    app.probe.open("slow");
    for client in clients {
        client.answer().await.assert_ok("slow");
    }
    assert_eq!(app.probe.count("setup slow"), 1);
    assert_eq!(app.host::<Archive>().activations(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_id_has_one_instance_of_its_own() {
    // H4.12
    let app = App::of::<Archive>().await;
    for id in ["a", "b", "a", "A", "a"] {
        app.get(&format!("/t/{id}")).await.assert_ok(id);
    }
    assert_eq!(app.probe.events(), ["setup a", "setup b", "setup A"]);
    let probe = app.probe.clone();
    app.shutdown().await;
    for id in ["a", "b", "A"] {
        assert!(probe.index(&format!("setup {id}")) < probe.index(&format!("teardown {id}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_third_activation_waits_while_two_run_and_residents_serve() {
    // H4.2, E25
    let app = App::of::<Archive>().await;
    app.get("/t/resident").await.assert_ok("resident");
    let clients = ["slow-1", "slow-2"].map(|id| app.client(&format!("/t/{id}")));
    app.probe.seen("at slow-1").await;
    app.probe.seen("at slow-2").await;
    let third = app.client("/t/c");
    settle().await;
    assert!(!app.probe.has("setup c"));
    app.get("/t/resident").await.assert_ok("resident");
    app.probe.open("slow-2");
    third.answer().await.assert_ok("c");
    assert!(!app.probe.has("left slow-1"));
    app.probe.open("slow-1");
    for client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_activation_makes_room_for_the_next() {
    // H4.2
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let bad = app.client("/t/slow-bad");
    app.probe.seen("at slow-bad").await;
    let next = app.client("/t/a");
    settle().await;
    app.probe.open("slow-bad");
    assert_eq!(bad.answer().await.status, 500);
    next.answer().await.assert_ok("a");
}

#[tokio::test(start_paused = true)]
async fn a_queued_activation_is_refused_at_its_deadline_and_is_still_there_for_the_retry() {
    // H4.3, E26
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let first = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let second = app.client("/t/slow-2");
    pass(millis(900)).await;
    assert!(!second.is_answered());
    pass(millis(200)).await;
    second
        .answer()
        .await
        .assert_retry("activation queue full; retry");
    assert_eq!(app.host::<Archive>().len(), 2);
    let retry = app.client("/t/slow-2");
    settle().await;
    app.probe.open("slow-1");
    app.probe.seen("at slow-2").await;
    // Once it has started there is no limit.
    pass(secs(600)).await;
    assert!(!retry.is_answered());
    app.probe.open("slow-2");
    retry.answer().await.assert_ok("slow-2");
    first.answer().await.assert_ok("slow-1");
    assert_eq!(app.probe.count("setup slow-2"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queued_activation_that_nobody_waits_for_runs_all_the_same() {
    // H4.3
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let first = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    app.get("/t/b")
        .await
        .assert_retry("activation queue full; retry");
    app.probe.open("slow-1");
    first.answer().await.assert_ok("slow-1");
    app.probe.seen("setup b").await;
    settle().await;
    assert_eq!(app.host::<Archive>().activations(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_accepted_socket_is_told_that_the_queue_is_full() {
    // H4.4, H2.16
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let _first = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let mut accepted = app.socket("/t/b/socket?accept").await.expect("accepted");
    assert_eq!(
        accepted.text().await,
        "refused: activation queue full; retry"
    );
    let reason = "activation queue full; retry".to_owned();
    assert_eq!(accepted.closed().await, (1013, reason.clone()));
    let told = SocketFailure::Refused {
        message: reason,
        retry_after: secs(1),
    };
    assert!(app.probe.has(&format!("{told:?}")));
    let refused = app.socket("/t/c/socket").await.err().expect("not accepted");
    refused.assert_retry("activation queue full; retry");
}

#[tokio::test(start_paused = true)]
async fn a_failed_setup_is_shared_by_its_callers_and_leaves_nothing() {
    // H4.6
    let metrics = Metrics::capture();
    let app = App::placed::<Archive>(HostOptions::new()).await;
    let clients: Vec<_> = (0..3).map(|_| app.client("/t/slow-bad")).collect();
    app.probe.seen("at slow-bad").await;
    settle().await;
    app.probe.open("slow-bad");
    for client in clients {
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (500, "Internal Server Error")
        );
    }
    assert_eq!(app.probe.count("setup slow-bad"), 1);
    assert!(app.host::<Archive>().is_empty());
    assert_eq!(app.host::<Archive>().activations(), 0);
    assert_eq!(app.host::<Archive>().evictions(), 0);
    assert_eq!(app.placements().requested(), [], "the placement stays");
    let failures = "pinned_request_failures_total{phase=lifespan,transport=http}";
    assert_eq!(metrics.value(failures), 3.0);
    app.probe.open("healed");
    app.get("/t/slow-bad").await.assert_ok("slow-bad");
}

#[tokio::test(start_paused = true)]
async fn the_same_epoch_is_still_admitted_after_a_failed_setup() {
    // H4.6, H12.5
    let app = App::placed::<Archive>(HostOptions::new()).await;
    for status in [500, 500] {
        assert_eq!(app.get_at("/t/bad", 3).await.status, status);
    }
    app.probe.open("healed");
    app.get_at("/t/bad", 3).await.assert_ok("bad");
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_panics_has_failed() {
    // H4.6
    let app = App::of::<Archive>().await;
    let answer = app.get("/t/torn").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (500, "Internal Server Error")
    );
    app.probe.open("healed");
    app.get("/t/torn").await.assert_ok("torn");
}

#[tokio::test(start_paused = true)]
async fn a_socket_shows_a_failed_setup_without_its_text() {
    // H4.6, H2.16
    let app = App::of::<Archive>().await;
    let refused = app
        .socket("/t/bad/socket")
        .await
        .err()
        .expect("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (403, ""));
    let mut accepted = app.socket("/t/bad/socket?accept").await.expect("accepted");
    assert_eq!(accepted.text().await, "failed: activation failed");
    assert_eq!(
        accepted.closed().await,
        (1011, "activation failed".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn an_http_error_of_a_setup_passes_through() {
    // H4.7
    let metrics = Metrics::capture();
    let app = App::of::<Archive>().await;
    app.get("/t/moved").await.assert_detail(410, "moved");
    let refused = app
        .socket("/t/moved/socket")
        .await
        .err()
        .expect("not accepted");
    refused.assert_detail(410, "moved");
    let mut accepted = app
        .socket("/t/moved/socket?accept")
        .await
        .expect("accepted");
    assert_eq!(
        accepted.closed().await,
        (1011, "activation failed".to_owned())
    );
    assert!(
        !app.probe
            .events()
            .iter()
            .any(|event| event.contains("Refused"))
    );
    for transport in ["http", "websocket"] {
        let failures =
            format!("pinned_request_failures_total{{phase=lifespan,transport={transport}}}");
        assert_eq!(metrics.value(&failures), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_does_not_take_the_activation_along() {
    // H4.8
    let app = App::of::<Archive>().await;
    let leaving = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let staying = app.client("/t/slow");
    settle().await;
    leaving.leave().await;
    app.probe.open("slow");
    staying.answer().await.assert_ok("slow");
    let alone = app.client("/t/slow-2");
    app.probe.seen("at slow-2").await;
    alone.leave().await;
    app.probe.open("slow-2");
    settle().await;
    assert_eq!(app.host::<Archive>().activations(), 2);
    app.get("/t/slow-2").await.assert_ok("slow-2");
    assert_eq!(app.probe.count("setup slow-2"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abort_cancels_an_activation_whether_it_runs_or_waits() {
    // H4.9, E27
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let running = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let queued = app.client("/t/slow-2");
    let third = app.client("/t/c");
    settle().await;
    let host = app.host::<Archive>();
    host.abort("slow-2");
    queued.answer().await.assert_aborted();
    assert!(!app.probe.has("setup slow-2"));
    settle().await;
    assert_eq!(host.len(), 2);
    host.abort("slow-1");
    running.answer().await.assert_aborted();
    assert!(app.probe.has("left slow-1"));
    // Its slot is free, and so are the ids.
    third.answer().await.assert_ok("c");
    app.probe.open("slow-2");
    app.get("/t/slow-2").await.assert_ok("slow-2");
    assert!(
        !app.probe.has("teardown slow-1"),
        "what was not set up is not torn down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_success_moves_the_counters_and_notes_the_time() {
    // H4.10
    let metrics = Metrics::capture();
    let app = App::of::<Archive>().await;
    let waiting = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let row = || app.worker().stats()["instances"][0].clone();
    assert!(row().get("activatedAt").is_none());
    app.probe.open("slow");
    waiting.answer().await.assert_ok("slow");
    assert!(row()["activatedAt"].as_u64().expect("a time") > 0);
    assert_eq!(app.worker().stats()["namespaces"]["/t"]["activations"], 1);
    assert_eq!(metrics.value("pinned_instance_activations_total"), 1.0);
    assert_eq!(metrics.value("pinned_active_instances"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn the_next_instance_of_an_id_comes_after_the_end_of_the_last() {
    // H4.11
    let app = App::of::<Archive>().await;
    app.get("/t/heavy").await.assert_ok("heavy");
    app.host::<Archive>().abort("heavy");
    app.probe.seen("at heavy").await;
    let next = app.client("/t/heavy");
    settle().await;
    assert_eq!(app.probe.count("setup heavy"), 1);
    app.probe.open("heavy");
    next.answer().await.assert_ok("heavy");
    let events = app.probe.events();
    assert_eq!(
        events,
        [
            "setup heavy",
            "teardown heavy",
            "at heavy",
            "gone heavy",
            "setup heavy"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_in_the_middle_of_an_activation_lets_its_caller_through() {
    // E31, H10.7, H10.11
    let app = App::of::<Archive>().await;
    let caller = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let worker = app.worker().clone();
    let drained = crate::rig::domain().spawn(async move { worker.drain(Some(secs(60))).await });
    settle().await;
    app.get("/t/other")
        .await
        .assert_retry("host draining; retry");
    app.probe.open("slow");
    caller.answer().await.assert_ok("slow");
    bounded(drained).await.expect("drained");
    assert!(app.probe.index("winding down slow") < app.probe.index("teardown slow"));
    assert!(app.worker().is_drained());
}

#[tokio::test(start_paused = true)]
async fn an_activation_is_cancelled_at_the_deadline_of_a_drain() {
    // H10.7, H4.9
    let app = App::of::<Archive>().await;
    let caller = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let started = crate::rig::domain().monotonic();
    bounded(app.worker().drain(Some(secs(20)))).await;
    assert_eq!(started.elapsed().as_secs(), 20);
    caller.answer().await.assert_aborted();
    assert!(app.probe.has("left slow"));
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_asked_for_by_setup_closes_after_the_first_request() {
    // Asked twice in setup, and once more in teardown with an abort: one close.
    let app = App::of::<Archive>().await;
    app.get("/t/eager").await.assert_ok("eager");
    app.empty::<Archive>().await;
    assert_eq!(
        app.probe.events(),
        [
            "setup eager",
            "winding down eager",
            "teardown eager",
            "gone eager"
        ]
    );
    assert_eq!(app.host::<Archive>().evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn whatever_comes_first_after_an_eviction_finds_a_set_up_instance() {
    let app = App::of::<Archive>().await;
    let evicted = async || {
        app.host::<Archive>().abort("a");
        app.empty::<Archive>().await;
    };
    app.get("/t/a").await.assert_ok("a");
    evicted().await;
    app.get("/t/a").await.assert_ok("a");
    evicted().await;
    let mut socket = app.socket("/t/a/socket").await.expect("accepted");
    assert_eq!(socket.text().await, "a");
    evicted().await;
    app.get("/t/b/ask/a").await.assert_ok("a");
    app.host::<Archive>().abort("b");
    evicted().await;
    let turn = app.host::<Archive>().read("a").await.expect("a turn");
    assert_eq!(turn.ctx.id(), "a");
    drop(turn);
    evicted().await;
    let instance = app
        .host::<Archive>()
        .instance("a")
        .await
        .expect("an instance");
    assert_eq!(instance.read().await.expect("a turn").ctx.id(), "a");
    assert_eq!(app.probe.count("setup a"), 6);
}

#[tokio::test(start_paused = true)]
async fn code_of_the_same_process_is_told_why_an_instance_cannot_be_had() {
    // H4.3, H4.6
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let host = app.host::<Archive>();
    let failed = host.read("bad").await.err().expect("a failure");
    assert!(matches!(failed, Unavailable::SetupFailed(_)));
    let _first = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let queued = host.instance("b").await.err().expect("a refusal");
    assert!(matches!(
        queued,
        Unavailable::Refused(Refusal::ActivationQueue)
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_an_id_has_at_most_one_instance() {
    // H4.11 under aborts, failures and evictions from all sides
    let options = HostOptions::new()
        .idle_timeout(millis(1))
        .sweep_interval(millis(1))
        .max_concurrent_activations(4);
    let app = std::sync::Arc::new(App::with::<Single>(options).await);
    let callers: Vec<_> = (0..8_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            crate::rig::domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("ids")
                    .expect("a label");
                for _ in 0..200 {
                    let id = rng.u64() % 3;
                    match rng.u64() % 8 {
                        0 => app.host::<Single>().abort(&id.to_string()),
                        1 => app.client(&format!("/t/{id}")).hang_up(),
                        _ => {
                            let status = app.get(&format!("/t/{id}")).await.status;
                            assert!(matches!(status, 200 | 503), "{status}");
                        }
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = crate::rig::domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever")
            .expect("at most one at a time");
    }
    let empty = crate::rig::domain()
        .timeout(secs(30), app.empty::<Single>())
        .await;
    empty.expect("no count was leaked");
    assert!(!app.probe.has("overlap"));
}

/// Notes when there are two of one id.
struct Single {
    probe: Probe,
    key: String,
}

#[pinned_api]
impl Single {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let (probe, key) = (probe(&ctx), format!("live {}", ctx.id()));
        if probe.is_open(&key) {
            probe.note("overlap");
        }
        probe.open(&key);
        let single = Self { probe, key };
        tokio::task::yield_now().await;
        single
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        tokio::task::yield_now().await;
    }

    #[route::get("/")]
    async fn read(&self) {
        tokio::task::yield_now().await;
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        self.probe.shut(&self.key);
    }
}
