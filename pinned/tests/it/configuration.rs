//! Options and what is wrong with them (H16, W1).
//!
//! Types rule most of it out: durations are neither negative nor NaN, counts are whole, a builder is used up by
//! `build` so that nothing is attached to a worker that serves (H16.2). Attribute options are checked at compile time
//! (`tests/ui`), environment variables where they are read. A control plane, and with it its url, token, takeover and
//! epoch (W1.1, W1.2), and registration (W1.4, W1.5) are not part of this version.

use std::sync::Arc;
use std::time::Duration;

use pinned::{
    Context, Error, HostOptions, PinnedHost, PinnedWorker, WorkerBuilder, lifespan, pinned_api,
    route,
};

use crate::app::{App, Gate, pass, settle};

#[derive(Default)]
struct Bare;

#[pinned_api]
impl Bare {
    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "bare"
    }
}

#[derive(Default)]
struct Other;

#[pinned_api]
impl Other {}

struct Slow;

#[pinned_api]
impl Slow {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        ctx.state::<Gate>().unwrap().pass().await;
        Self
    }

    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "slow"
    }
}

#[derive(Default)]
struct Restless;

#[pinned_api]
impl Restless {
    #[route::post("/task")]
    async fn task(&mut self, ctx: Context) {
        ctx.spawn(std::future::pending::<()>());
    }
}

#[derive(Default)]
struct Declared;

#[pinned_api(
    max_instances = 1,
    idle_timeout = "1m",
    sweep_interval = "1s",
    max_waiting = 0
)]
impl Declared {
    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "declared"
    }

    #[route::post("/hold")]
    async fn hold(&mut self, ctx: Context) {
        ctx.state::<Gate>().unwrap().pass().await;
    }
}

fn options() -> HostOptions {
    HostOptions::new().namespace("/things")
}

fn refusal(builder: WorkerBuilder) -> String {
    match builder.build().unwrap_err() {
        Error::Config(text) => text,
        other => panic!("not a configuration error: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_idle_for_five_minutes_by_default() {
    // H16.1: 300 s, looked at every 5 s.
    let app = App::start(PinnedWorker::builder().host::<Bare>("/things")).await;
    let host: PinnedHost<Bare> = app.worker.hosted().unwrap();
    pass(1_000).await;
    app.get("/things/a").send().await.assert_ok("bare");
    pass(299_000).await;
    assert_eq!(host.len(), 1);
    pass(6_000).await;
    assert_eq!((host.len(), host.evictions()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_attached_for_a_day_by_default() {
    // H16.1: 86,400 s.
    let app = App::start(PinnedWorker::builder().host::<Restless>("/things")).await;
    let host: PinnedHost<Restless> = app.worker.hosted().unwrap();
    assert_eq!(app.post("/things/a/task").send().await.status, 200);
    pass(86_390_000).await;
    assert_eq!(host.len(), 1);
    pass(20_000).await;
    assert_eq!(host.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_setups_run_at_once_and_the_third_waits_a_second_by_default() {
    // H16.1
    let gate = Gate::closed();
    let app = App::start(
        PinnedWorker::builder()
            .host::<Slow>("/things")
            .state(gate.clone()),
    )
    .await;
    let first = app.get("/things/1").begin().await;
    let second = app.get("/things/2").begin().await;
    let third = app.get("/things/3").begin().await;
    gate.reached(2).await;
    pass(990).await;
    assert!(!third.is_finished());
    pass(10).await;
    third
        .await
        .unwrap()
        .assert_refused("activation queue full; retry");
    gate.open();
    first.await.unwrap().assert_ok("slow");
    second.await.unwrap().assert_ok("slow");
    settle().await;
    assert_eq!(app.worker.hosted::<Slow>().unwrap().activations(), 3);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_instances_are_live_at_most_by_default() {
    // H16.1
    let app = App::start(PinnedWorker::builder().host::<Bare>("/things")).await;
    let host: PinnedHost<Bare> = app.worker.hosted().unwrap();
    for n in 0..10_000 {
        host.instance(&n.to_string()).await.unwrap();
    }
    app.get("/things/more")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
}

#[tokio::test(start_paused = true)]
async fn the_mount_wins_over_the_attribute_and_the_attribute_over_the_default() {
    let declared = App::start(PinnedWorker::builder().host::<Declared>("/things")).await;
    declared.get("/things/a").send().await.assert_ok("declared");
    declared
        .get("/things/b")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
    pass(62_000).await;
    assert!(declared.worker.hosted::<Declared>().unwrap().is_empty());

    let mounted = options()
        .max_instances(2)
        .idle_timeout(Duration::from_secs(3_600));
    let mounted = App::start(PinnedWorker::builder().host_with::<Declared>(mounted)).await;
    mounted.get("/things/a").send().await.assert_ok("declared");
    mounted.get("/things/b").send().await.assert_ok("declared");
    pass(62_000).await;
    assert_eq!(mounted.worker.hosted::<Declared>().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_turn_where_nobody_may() {
    let gate = Gate::closed();
    let app = App::start(
        PinnedWorker::builder()
            .host::<Declared>("/things")
            .state(gate.clone()),
    )
    .await;
    let holder = app.post("/things/a/hold").begin().await;
    gate.reached(1).await;
    app.get("/things/a")
        .send()
        .await
        .assert_refused("too many waiting turns; retry");
    gate.open();
    assert_eq!(holder.await.unwrap().status, 200);
    app.get("/things/a").send().await.assert_ok("declared");
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    // H4.3, H9.1, H16.1
    let zero = Duration::ZERO;
    let long = Duration::from_secs(60 * 60 * 24 * 365 * 31);
    let cases = [
        (options().detached_timeout(zero), "detached_timeout"),
        (options().sweep_interval(zero), "sweep_interval"),
        (
            options().activation_queue_deadline(zero),
            "activation_queue_deadline",
        ),
        (options().turn_timeout(zero), "turn_timeout"),
        (options().idle_timeout(long), "idle_timeout"),
        (
            options().detached_timeout(Duration::MAX),
            "detached_timeout",
        ),
        (options().sweep_interval(long), "sweep_interval"),
        (
            options().activation_queue_deadline(long),
            "activation_queue_deadline",
        ),
        (options().turn_timeout(Duration::MAX), "turn_timeout"),
        (options().max_instances(0), "max_instances"),
        (
            options().max_concurrent_activations(0),
            "max_concurrent_activations",
        ),
        (
            options().max_concurrent_activations(usize::MAX),
            "max_concurrent_activations",
        ),
    ];
    for (options, name) in cases {
        let text = refusal(PinnedWorker::builder().host_with::<Bare>(options));
        assert!(
            text.contains(&format!("`{name}`")) && text.contains("/things"),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_and_the_shortest_options_are_served() {
    let thirty_years = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    let longest = options()
        .idle_timeout(thirty_years)
        .detached_timeout(thirty_years)
        .sweep_interval(thirty_years)
        .activation_queue_deadline(thirty_years)
        .turn_timeout(thirty_years)
        .max_instances(usize::MAX);
    let app = App::start(PinnedWorker::builder().host_with::<Bare>(longest)).await;
    app.get("/things/a").send().await.assert_ok("bare");
    pass(3_600_000).await;
    assert_eq!(app.worker.hosted::<Bare>().unwrap().len(), 1);

    let nano = Duration::from_nanos(1);
    let shortest = options()
        .idle_timeout(Duration::ZERO)
        .sweep_interval(nano)
        .detached_timeout(nano);
    let app = App::start(PinnedWorker::builder().host_with::<Bare>(shortest)).await;
    app.get("/things/a").send().await.assert_ok("bare");
    pass(10).await;
    assert_eq!(app.worker.hosted::<Bare>().unwrap().len(), 0);
}

#[test]
fn a_namespace_belongs_to_one_struct() {
    // H16.2
    let twice = PinnedWorker::builder()
        .host::<Bare>("/things")
        .host::<Other>("/things");
    let error = twice.build().unwrap_err();
    assert!(matches!(error, Error::DuplicateNamespace(_)), "{error:?}");
    let text = error.to_string();
    for part in ["/things", "Bare", "Other"] {
        assert!(text.contains(part), "{text}");
    }
    // Also to itself, and one struct may have several.
    assert!(
        PinnedWorker::builder()
            .host::<Bare>("/things")
            .host::<Bare>("/things")
            .build()
            .is_err()
    );
    let both = PinnedWorker::builder()
        .host::<Bare>("/b")
        .host::<Bare>("/a")
        .build()
        .unwrap();
    // W1.3, W3.1: in the order in which they were attached.
    assert_eq!(both.namespaces().collect::<Vec<_>>(), ["/b", "/a"]);
    assert_eq!(both.hosted_at::<Bare>("/a").unwrap().namespace(), "/a");
    assert!(both.hosted_at::<Other>("/a").is_none());
}

#[test]
fn a_host_needs_a_namespace_and_a_worker_a_host() {
    // H16.2
    let text = refusal(PinnedWorker::builder().host_with::<Bare>(HostOptions::new()));
    assert!(text.contains("Bare has no namespace"), "{text}");
    let text = refusal(PinnedWorker::builder());
    assert!(text.contains("no namespace to serve"), "{text}");
}

#[test]
fn a_data_environment_needs_a_hostname() {
    // H16.3, W1.2
    let eu = || PinnedWorker::builder().host_with::<Bare>(options().env("eu"));
    let text = refusal(eu());
    assert!(
        text.contains("hostname") && text.contains("/things"),
        "{text}"
    );
    assert!(eu().hostname("worker-1.example").build().is_ok());
}

#[test]
fn a_lease_buffer_is_longer_than_zero() {
    // W1.1, W1.2, W7.7
    let builder = || PinnedWorker::builder().host::<Bare>("/things");
    let text = refusal(builder().lease_buffer(Duration::ZERO));
    assert!(text.contains("longer than zero"), "{text}");
    let worker = builder().build().unwrap();
    assert_eq!(worker.lease().buffer(), Duration::from_secs(5));
    let worker = builder()
        .lease_buffer(Duration::from_millis(1))
        .build()
        .unwrap();
    assert_eq!(worker.lease().buffer(), Duration::from_millis(1));
}

#[test]
fn every_worker_has_a_secret_of_its_own() {
    // W2.1, W2.6
    let worker = || {
        PinnedWorker::builder()
            .host::<Bare>("/things")
            .build()
            .unwrap()
    };
    let (one, other) = (worker(), worker());
    assert_eq!(one.secret().len(), 64);
    assert!(
        one.secret()
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
    assert_ne!(one.secret(), other.secret());
    assert!(!format!("{one:?}").contains(one.secret()));
}

#[tokio::test(start_paused = true)]
async fn starting_twice_is_an_error_and_disturbs_nothing() {
    // H11.14, H16.2
    let app = App::start(
        PinnedWorker::builder()
            .host::<Bare>("/b")
            .host::<Other>("/a"),
    )
    .await;
    app.get("/b/x").send().await.assert_ok("bare");
    assert!(matches!(
        app.worker.run_lifespan().await,
        Err(Error::AlreadyStarted)
    ));
    app.get("/b/x").send().await.assert_ok("bare");
    assert_eq!(app.worker.hosted::<Bare>().unwrap().activations(), 1);
    app.shutdown().await;
    assert!(matches!(
        app.worker.run_lifespan().await,
        Err(Error::AlreadyStarted)
    ));
}

#[tokio::test(start_paused = true)]
async fn local_mode_is_always_ready() {
    // W1.6
    let app = App::start(
        PinnedWorker::builder()
            .host::<Bare>("/b")
            .host::<Other>("/a"),
    )
    .await;
    pass(3_600_000).await;
    assert!(app.worker.is_ready());
    app.get("/b/x").send().await.assert_ok("bare");
    assert!(!app.worker.is_draining() && !app.worker.is_drained());
    app.worker.drain(None).await;
    assert!(app.worker.is_draining() && app.worker.is_drained());
    app.worker.revoke_drain();
    assert!(!app.worker.is_draining() && !app.worker.is_drained());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_starts_at_once_one_succeeds() {
    // H11.14
    for _ in 0..50 {
        let worker = PinnedWorker::builder()
            .host::<Bare>("/b")
            .host::<Other>("/a")
            .build()
            .unwrap();
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let worker = worker.clone();
                crate::app::spawn(async move { worker.run_lifespan().await.map(Arc::new) })
            })
            .collect();
        let mut running = Vec::new();
        for start in starts {
            running.extend(start.await.unwrap());
        }
        assert_eq!(running.len(), 1);
    }
}
