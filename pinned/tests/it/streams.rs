//! Streaming bodies (H6.1 to H6.4, H6.9; E14, E21, E33).

use std::convert::Infallible;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use pinned::{Context, HostOptions, Instance, Refusal, lifespan, pinned_api, route};

use crate::observe::Metrics;
use crate::rig::{App, Probe, bounded, domain, millis, pass, secs, settle};

struct Feed {
    probe: Probe,
}

/// Notes its end as `closed`, and panics there if the gate `torn` is open.
struct Producer(Probe);

impl Producer {
    fn new(probe: &Probe) -> Self {
        probe.note("opened");
        Self(probe.clone())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.0.note("closed");
        if self.0.is_open("torn") {
            panic!("in the cleanup of a producer");
        }
    }
}

#[pinned_api]
impl Feed {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        probe.note("setup");
        Self { probe }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.probe.note("teardown");
    }

    #[route::get("/")]
    async fn read(&mut self) -> &'static str {
        "here"
    }

    #[route::get("/wind-down")]
    async fn wind_down(&self, ctx: Context) {
        ctx.lease().wind_down(None);
    }

    /// Chunks without end, as fast as they are taken.
    #[route::get("/numbers")]
    async fn numbers(&self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(0_u64, move |n| {
            producer.0.note("made");
            async move { Some((n.to_string(), n + 1)) }
        })
    }

    /// One chunk for each open gate, `1` and so on, and the end at the gate `end`. Begins under the exclusive turn.
    #[route::get("/gated")]
    async fn gated(&mut self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(1_u64, move |n| {
            let probe = producer.0.clone();
            async move {
                probe.gate(&n.to_string()).await;
                (!probe.is_open("end")).then(|| (n.to_string(), n + 1))
            }
        })
    }

    /// One chunk, and then a panic.
    #[route::get("/panic")]
    async fn panic(&self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(0_u64, move |n| {
            let _ = &producer;
            async move {
                assert_eq!(n, 0, "with a secret");
                Some((n.to_string(), n + 1))
            }
        })
    }

    /// One chunk, and then an error.
    #[route::get("/error")]
    async fn error(&self) -> Response {
        let _cleanup = self.probe.cleanup("left error");
        let items = [Ok("0"), Err(std::io::Error::other("broken"))];
        Body::from_stream(stream::iter(items)).into_response()
    }

    /// A stream that comes after a wait.
    #[route::get("/late")]
    async fn late(&self) -> Response {
        self.probe.gate("late").await;
        let producer = Producer::new(&self.probe);
        chunks((), move |()| {
            let _ = &producer;
            async { Some((String::new(), ())) }
        })
    }

    /// Takes a turn for each chunk.
    #[route::get("/turns")]
    async fn turns(this: Instance<Self>) -> Response {
        chunks(0_u64, move |n| {
            let this = this.clone();
            async move {
                let turn = this.write().await.ok()?;
                turn.probe.note("had a turn");
                let probe = turn.probe.clone();
                drop(turn);
                probe.gate(&format!("chunk {n}")).await;
                Some((n.to_string(), n + 1))
            }
        })
    }

    /// Holds a turn from its first chunk to its end.
    #[route::get("/greedy")]
    async fn greedy(this: Instance<Self>) -> Result<Response, Refusal> {
        let turn = this.read().await?;
        Ok(chunks(0_u64, move |n| {
            turn.probe.note("made");
            async move { Some((n.to_string(), n + 1)) }
        }))
    }

    #[route::get("/fixed")]
    async fn fixed(&self) -> &'static str {
        "of known length"
    }
}

fn chunks<S, F, Fut>(state: S, step: F) -> Response
where
    S: Send + 'static,
    F: FnMut(S) -> Fut + Send + 'static,
    Fut: Future<Output = Option<(String, S)>> + Send + 'static,
{
    let chunks = stream::unfold((state, step), |(state, mut step)| async move {
        let (chunk, state) = step(state).await?;
        Some((Ok::<_, Infallible>(chunk), (state, step)))
    });
    (StatusCode::OK, Body::from_stream(chunks)).into_response()
}

fn short() -> HostOptions {
    HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1))
}

#[tokio::test(start_paused = true)]
async fn a_producer_advances_only_as_its_client_takes_chunks() {
    // H6.1
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/numbers").await;
    for n in 0..5 {
        assert_eq!(stream.text().await, n.to_string());
    }
    assert_eq!(app.probe.count("made"), 5);
    pass(secs(600)).await;
    assert_eq!(app.probe.count("made"), 5, "nothing is made ahead");
    assert_eq!(stream.text().await, "5");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_its_producer() {
    // H6.1, over a connection: no more is made than the buffers of the sockets and of the server take.
    let app = App::of::<Feed>().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("bound");
    let router = app.worker().into_router();
    let server = domain().spawn(async move { axum::serve(listener, router).await });
    let mut client = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let request = b"GET /t/a/numbers HTTP/1.1\r\nhost: here\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut client, request)
        .await
        .expect("sent");
    app.probe.seen("made").await;
    // Until nothing more is made for a while.
    let mut made = 0;
    loop {
        domain().sleep(millis(200)).await;
        let now = app.probe.count("made");
        if now == made {
            break;
        }
        made = now;
    }
    // It is stream work still, and ends with its client.
    assert_eq!(app.worker().stats()["instances"][0]["connections"], 1);
    drop(client);
    app.probe.seen("closed").await;
    assert_eq!(app.probe.count("closed"), 1);
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_keeps_its_instance_and_its_end_lets_it_go() {
    // H6.2
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    for _ in 0..3 {
        pass(secs(30)).await;
        app.get("/t/a").await.assert_ok("here");
    }
    assert_eq!(app.probe.count("setup"), 1);
    app.probe.open("end");
    app.probe.open("1");
    stream.assert_end().await;
    pass(secs(8)).await;
    assert!(!app.probe.has("teardown"), "its end is activity");
    pass(secs(4)).await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_does_not_hold_the_turn_that_it_began_under() {
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    app.get("/t/a").await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_stream_cleanly_and_its_cleanup_runs_once() {
    // H6.3
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    app.probe.open("1");
    assert_eq!(stream.text().await, "1");
    stream.assert_open().await;
    app.host::<Feed>().abort("a");
    stream.assert_end().await;
    drop(stream);
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_client_does_not_keep_an_aborted_instance() {
    // H6.3: its body ends although nobody reads it
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/numbers").await;
    assert_eq!(stream.text().await, "0");
    app.host::<Feed>().abort("a");
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
    stream.assert_end().await;
    drop(stream);
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_cancels_its_producer_once() {
    // H6.3
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    drop(stream);
    assert_eq!(app.probe.count("closed"), 1);
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_before_the_stream_began_leaves_nothing_open() {
    // H6.3
    let app = App::with::<Feed>(short()).await;
    let client = app.client("/t/a/late");
    app.probe.seen("at late").await;
    client.leave().await;
    app.probe.open("late");
    app.probe.seen("closed").await;
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_panics_is_counted_and_harms_nobody() {
    // H6.3
    let metrics = Metrics::capture();
    let app = App::with::<Feed>(short()).await;
    app.probe.open("torn");
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    drop(stream);
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=stream_aclose}"),
        1.0
    );
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_for_longer_than_the_idle_timeout_goes_on() {
    // H6.4, E33
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    for n in 1..4 {
        pass(secs(60)).await;
        app.probe.open(&n.to_string());
        assert_eq!(stream.text().await, n.to_string());
    }
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_for_longer_than_the_idle_timeout_keeps_its_stream() {
    // H6.4, E33
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/numbers").await;
    assert_eq!(stream.text().await, "0");
    pass(secs(120)).await;
    assert_eq!(stream.text().await, "1");
    assert_eq!(app.probe.count("setup"), 1);
    drop(stream);
    pass(secs(5)).await;
    assert!(!app.probe.has("teardown"), "its end is activity");
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_has_begun_to_read_counts() {
    // H6.4: from the handler's return on
    let app = App::with::<Feed>(short()).await;
    let stream = app.stream("/t/a/numbers").await;
    pass(secs(60)).await;
    assert_eq!(app.host::<Feed>().len(), 1);
    drop(stream);
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_known_length_is_no_stream() {
    let app = App::with::<Feed>(short()).await;
    let unread = app.stream("/t/a/fixed").await;
    app.empty::<Feed>().await;
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn chunks_flow_on_under_a_close_until_the_release_is_acknowledged() {
    // H6.9, H11.8, E14
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/gated").await;
    app.placements().hold();
    app.get("/t/a/wind-down").await.assert_ok("");
    bounded(app.placements().parked()).await;
    assert!(app.probe.has("teardown"));
    for n in ["1", "2"] {
        app.probe.open(n);
        assert_eq!(stream.text().await, n);
    }
    stream.assert_open().await;
    app.placements().release();
    stream.assert_end().await;
    assert_eq!(app.placements().released().len(), 1);
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_the_cap_of_a_release_that_hangs() {
    // E14, H11.7
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/gated").await;
    app.placements().hold();
    app.host::<Feed>().abort("a");
    let since = domain().monotonic();
    stream.assert_end().await;
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    assert!(app.placements().released().is_empty());
    app.placements().release();
    settle().await;
    assert_eq!(app.placements().released().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_stream_without_its_client() {
    // E21, H10.7
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    bounded(app.worker().drain(None)).await;
    assert!(app.worker().is_drained());
    stream.assert_end().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_panics_breaks_its_body_off_and_aborts_the_instance() {
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/panic").await;
    assert_eq!(stream.text().await, "0");
    let error = stream.next().await.expect_err("broken off");
    assert!(!error.to_string().contains("secret"), "{error}");
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_fails_breaks_its_body_off_and_leaves_the_instance() {
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/error").await;
    assert_eq!(stream.text().await, "0");
    stream.next().await.expect_err("broken off");
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 1);
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_wants_a_turn_of_a_closing_instance_ends_after_the_release() {
    // H11.8
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/turns").await;
    app.probe.open("chunk 0");
    assert_eq!(stream.text().await, "0");
    stream.assert_open().await;
    app.placements().hold();
    app.host::<Feed>().abort("a");
    bounded(app.placements().parked()).await;
    app.probe.open("chunk 1");
    assert_eq!(stream.text().await, "1");
    stream.assert_open().await;
    app.placements().release();
    stream.assert_end().await;
    assert_eq!(app.probe.count("had a turn"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_that_holds_a_turn_does_not_keep_its_instance() {
    // Promise 4: no stream wedges an instance
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/greedy").await;
    assert_eq!(stream.text().await, "0");
    app.host::<Feed>().abort("a");
    let since = domain().monotonic();
    app.probe.seen("teardown").await;
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    stream.assert_end().await;
    app.empty::<Feed>().await;
    assert_eq!(app.placements().released().len(), 1);
    app.get("/t/a").await.assert_ok("here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_streams_that_end_in_every_way_leave_nothing_open() {
    // Promise 4; H6.3: each producer is cleaned up once
    let options = HostOptions::new()
        .idle_timeout(millis(20))
        .sweep_interval(millis(5));
    let app = std::sync::Arc::new(App::with::<Feed>(options).await);
    let callers: Vec<_> = (0..6_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("streams")
                    .expect("a label");
                for _ in 0..60 {
                    let mut stream = match app.try_stream("/t/a/numbers").await {
                        Ok(stream) => stream,
                        Err(refused) => {
                            assert_eq!(refused.status, 503);
                            continue;
                        }
                    };
                    for _ in 0..rng.u64() % 20 {
                        if stream.next().await.expect("no error").is_none() {
                            break;
                        }
                    }
                    if rng.u64().is_multiple_of(8) {
                        app.host::<Feed>().abort("a");
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever")
            .expect("no broken stream");
    }
    let empty = domain().timeout(secs(30), app.empty::<Feed>()).await;
    empty.expect("no count was leaked");
    assert_eq!(app.probe.count("opened"), app.probe.count("closed"));
}
