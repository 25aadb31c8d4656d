//! The worker watches itself: what hangs turns it unready, until it answers again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use pinned::domain::Domain;
use pinned::{HostOptions, PinnedWorker, SelfProbe, Unready};
use tower::ServiceExt;

use crate::app::{App, pass};
use crate::observe::{Logs, Metrics};
use crate::scene::{Scene, quick, seconds};

const ROUTER: &str = "wedged: requests to the worker's own router hang";
const RUNTIME: &str = "wedged: the runtime stalls";

/// A worker whose self-probe asks an instance, through the worker's whole router. It waits while the gate `work` is held.
async fn asks_through_its_router(scene: &Scene) -> App {
    let router: Arc<OnceLock<axum::Router>> = Arc::default();
    let asked = Arc::clone(&router);
    let probe = SelfProbe::new().also(move || {
        let router = asked.get().cloned();
        async move {
            let request = Request::post("/actors/probe/work").body(Body::empty());
            if let Some(router) = router {
                let answer = router.oneshot(request.expect("a request")).await;
                assert!(answer.expect("infallible").status().is_success());
            }
        }
    });
    let app = App::start(scene.worker(quick()).self_probe(probe)).await;
    router
        .set(app.worker.into_router())
        .expect("set once, before the probe first runs");
    app
}

#[tokio::test(start_paused = true)]
async fn a_router_that_hangs_turns_the_worker_unready_until_it_answers() {
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    let scene = Scene::default();
    let gate = scene.hold("work");
    let app = asks_through_its_router(&scene).await;
    assert_eq!(metrics.value("pinned_self_probe_healthy"), 1.0);
    pass(4_900).await;
    app.probe("/readyz").await.assert_ok("");
    pass(200).await;
    app.probe("/readyz").await.assert_error(503, ROUTER);
    app.probe("/livez").await.assert_error(503, ROUTER);
    assert_eq!(app.worker.readiness(), Err(Unready::RouterHangs));
    assert_eq!(metrics.value("pinned_self_probe_healthy"), 0.0);
    pass(60_000).await;
    let count = "pinned_self_probe_failures_total{reason=router}";
    assert_eq!(metrics.value(count), 1.0);
    assert_eq!(
        logs.events("ERROR", "the self-probe gets no answer").len(),
        1
    );
    gate.open();
    pass(10).await;
    app.probe("/readyz").await.assert_ok("");
    app.probe("/livez").await.assert_ok("");
    assert_eq!(metrics.value("pinned_self_probe_healthy"), 1.0);
    assert_eq!(
        logs.events("INFO", "the self-probe is answered again")
            .len(),
        1
    );
    pass(60_000).await;
    assert_eq!(metrics.value(count), 1.0);
    assert!(app.worker.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_is_no_answer_and_is_asked_again() {
    let failing = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let fails = Arc::clone(&failing);
    let probe = SelfProbe::new().also(move || {
        let fails = fails.load(std::sync::atomic::Ordering::Relaxed);
        async move { assert!(!fails, "the program's own part breaks") }
    });
    let app = App::start(Scene::default().worker(quick()).self_probe(probe)).await;
    pass(10).await;
    app.probe("/readyz").await.assert_error(503, ROUTER);
    failing.store(false, std::sync::atomic::Ordering::Relaxed);
    pass(1_000).await;
    app.probe("/readyz").await.assert_ok("");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_told_not_to_does_not_watch_itself() {
    let scene = Scene::default();
    let probe = SelfProbe::off().also(|| async { panic!("nobody asks") });
    let app = App::start(scene.worker(quick()).self_probe(probe)).await;
    pass(60_000).await;
    app.probe("/readyz").await.assert_ok("");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_under_way_while_the_process_was_stopped_has_not_hung() {
    let (_metrics, logs) = (Metrics::capture(), Logs::capture());
    // It takes a moment, and then several steps, as one over a connection does.
    let probe = SelfProbe::new().also(|| async {
        Domain::real().sleep(Duration::from_millis(10)).await;
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    });
    let app = App::start(Scene::default().worker(quick()).self_probe(probe)).await;
    pass(5).await;
    // Nothing of the process runs, and the clock goes on.
    tokio::time::advance(seconds(60)).await;
    pass(1_500).await;
    app.probe("/readyz").await.assert_ok("");
    assert_eq!(
        logs.events("ERROR", "the self-probe gets no answer").len(),
        0
    );
}

#[test]
fn times_that_make_no_sense_are_refused() {
    for (interval, threshold) in [(0, 5), (5, 4)] {
        let probe = SelfProbe::new()
            .interval(seconds(interval))
            .threshold(seconds(threshold));
        let refused = Scene::default().worker(quick()).self_probe(probe).build();
        let text = refused.expect_err("refused").to_string();
        assert!(text.contains("self-probe"), "{text}");
    }
}

/// What `address` answers to a probe: its status line and its body.
fn ask(address: SocketAddr, path: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    write!(connection, "GET {path} HTTP/1.1\r\nhost: probe\r\n\r\n").expect("written");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer
}

#[allow(clippy::disallowed_methods, reason = "the runtime is a real one")]
fn until(address: SocketAddr, path: &str, status: &str, text: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = ask(address, path);
        if answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{path}: not {status} {text}: {answer}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_runtime_that_stalls_is_seen_from_beside_it_and_recovers() {
    let (tell, told) = mpsc::channel();
    let (stall, stalls) = mpsc::channel::<mpsc::Receiver<()>>();
    let served = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let worker = PinnedWorker::builder()
            .host_with::<crate::scene::Actor>(HostOptions::new().namespace("/actors"))
            .probe_address(([127, 0, 0, 1], 0))
            .self_probe(
                SelfProbe::new()
                    .interval(Duration::from_millis(20))
                    .threshold(Duration::from_millis(200)),
            )
            .build()
            .expect("a valid worker");
        runtime.block_on(async {
            let running = worker.run_lifespan().await.expect("the first start");
            tell.send(running.probe_address()).expect("the test waits");
            let domain = worker.domain().clone();
            loop {
                match stalls.try_recv() {
                    // Blocks the runtime's only thread.
                    Ok(end) => drop(end.recv()),
                    Err(mpsc::TryRecvError::Empty) => domain.sleep(Duration::from_millis(5)).await,
                    Err(mpsc::TryRecvError::Disconnected) => break,
                }
            }
            running.shutdown().await.expect("a clean shutdown");
        });
    });
    let address = told.recv().expect("it runs").expect("probes are answered");
    until(address, "/readyz", "200", "");
    for _ in 0..2 {
        let (end, ends) = mpsc::channel();
        stall.send(ends).expect("it runs");
        until(address, "/readyz", "503", RUNTIME);
        until(address, "/livez", "503", RUNTIME);
        end.send(()).expect("it waits");
        until(address, "/readyz", "200", "");
        until(address, "/livez", "200", "");
    }
    drop(stall);
    served.join().expect("it ends by itself");
    // The thread beside the runtime ends with the worker.
    assert!(TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_port_for_probes_that_is_taken_is_an_error_at_the_start() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = taken.local_addr().expect("bound");
    let worker = Scene::default()
        .worker(quick())
        .probe_address(address)
        .build()
        .expect("a valid worker");
    let error = worker.run_lifespan().await.expect_err("it is taken");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn the_port_for_probes_is_free_again_once_the_worker_has_ended() {
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    for shuts_down in [true, false].repeat(20) {
        let worker = Scene::default().worker(quick()).probe_address(address);
        let worker = worker.build().expect("a valid worker");
        let running = worker.run_lifespan().await.expect("the port is free");
        address = running.probe_address().expect("probes are answered");
        if shuts_down {
            running.shutdown().await.expect("a clean shutdown");
        }
    }
}

#[tokio::test]
async fn connections_that_ask_nothing_keep_no_probe_waiting() {
    let worker = Scene::default()
        .worker(quick())
        .probe_address(([127, 0, 0, 1], 0));
    let worker = worker.build().expect("a valid worker");
    let running = worker.run_lifespan().await.expect("the first start");
    let address = running.probe_address().expect("probes are answered");
    let silent: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(address).expect("it listens"))
        .collect();
    let answer = ask(address, "/livez");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The oldest had to go. That of the others some are still there shows that the probe did not wait for their time to pass.
    let mut rest = &silent[39];
    rest.set_nonblocking(true).expect("a socket");
    let read = rest.read(&mut [0]).expect_err("it is open");
    assert_eq!(read.kind(), std::io::ErrorKind::WouldBlock);
    let mut rest = &silent[20];
    rest.set_nonblocking(true).expect("a socket");
    let read = rest.read(&mut [0]);
    assert!(
        matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
        "{read:?}"
    );
}
