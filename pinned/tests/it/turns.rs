//! Turns: what the receivers of handlers promise (design.md, "Authoring").

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use axum::extract::Path;
use pinned::{Context, HostOptions, Instance, Refusal, Unavailable, lifespan, pinned_api, route};

use crate::rig::{App, Probe, bounded, domain, millis, pass, secs, settle};

struct Ledger {
    probe: Probe,
    ctx: Context,
    torn: bool,
    entries: Vec<String>,
}

#[pinned_api]
impl Ledger {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        if ctx.id() == "selfish" {
            let answer = ctx
                .cluster()
                .get("/t/selfish/")
                .send()
                .await
                .expect("an answer");
            probe.note(answer.status().as_str());
            probe.note(answer.text().await.expect("text"));
        }
        probe.note("setup");
        Self {
            probe,
            ctx,
            torn: false,
            entries: Vec::new(),
        }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        if self.ctx.id() == "selfish" {
            let again = self.ctx.cluster().get("/t/selfish/").send();
            let answer = again.await.expect("an answer");
            self.probe
                .note(format!("teardown {}", answer.status().as_u16()));
        }
        self.probe.note("teardown");
    }

    #[route::get("/")]
    async fn entries(&self) -> String {
        if self.torn {
            return "torn".to_owned();
        }
        self.entries.join(",")
    }

    /// Shared, until its gate opens.
    #[route::get("/shared/{gate}")]
    async fn shared(&self, Path(gate): Path<String>) -> String {
        let _cleanup = self.probe.cleanup(format!("left {gate}"));
        self.probe.gate(&gate).await;
        gate
    }

    /// Exclusive, until its gate opens.
    #[route::get("/exclusive/{gate}")]
    async fn exclusive(&mut self, Path(gate): Path<String>) -> String {
        let _cleanup = self.probe.cleanup(format!("left {gate}"));
        self.entries.push(gate.clone());
        self.probe.gate(&gate).await;
        gate
    }

    /// Shared, and asks `path` of this worker meanwhile.
    #[route::get("/shared-ask/{*path}")]
    async fn shared_ask(&self, ctx: Context, Path(path): Path<String>) -> String {
        self.probe.gate("ask").await;
        ask(&ctx, &path).await
    }

    /// Exclusive, and asks `path` of this worker meanwhile.
    #[route::get("/exclusive-ask/{*path}")]
    async fn exclusive_ask(&mut self, ctx: Context, Path(path): Path<String>) -> String {
        self.probe.gate("ask").await;
        ask(&ctx, &path).await
    }

    /// Without a turn: takes the exclusive one to ask, and gives it back to ask again.
    #[route::get("/instance-ask/{*path}")]
    async fn instance_ask(
        this: Instance<Self>,
        ctx: Context,
        Path(path): Path<String>,
    ) -> Result<String, Refusal> {
        let turn = this.write().await?;
        let within = ask(&ctx, &path).await;
        drop(turn);
        let after = ask(&ctx, &path).await;
        Ok(format!("{within}; {after}"))
    }

    /// What an `Instance` grants within the turns that its own handler took.
    #[route::get("/nested")]
    async fn nested(this: Instance<Self>) -> Result<String, Refusal> {
        let first = this.read().await?;
        let second = this.read().await?;
        let within_shared = this.write().await.map(drop);
        drop((first, second));
        let exclusive = this.write().await?;
        let within_exclusive = this.read().await.map(drop);
        drop(exclusive);
        drop(this.write().await?);
        Ok(format!(
            "{:?} {:?}",
            is_chain(&within_shared),
            is_chain(&within_exclusive)
        ))
    }

    /// A task of a handler that holds the exclusive turn wants a turn of its own.
    #[route::get("/spawn")]
    async fn spawn(&mut self, ctx: Context, this: Instance<Self>) {
        let probe = self.probe.clone();
        ctx.spawn(async move {
            let mut turn = this.write().await?;
            turn.entries.push("task".to_owned());
            probe.note("task had its turn");
            Ok::<(), Refusal>(())
        });
        self.probe.gate("spawn").await;
        self.entries.push("handler".to_owned());
    }

    #[route::get("/tear/{gate}")]
    async fn tear(&mut self, Path(gate): Path<String>) {
        self.torn = true;
        self.probe.gate(&gate).await;
        panic!("half done");
    }

    #[route::get("/tear-instance/{gate}")]
    async fn tear_instance(this: Instance<Self>, Path(gate): Path<String>) -> Result<(), Refusal> {
        let mut turn = this.write().await?;
        turn.torn = true;
        let probe = turn.probe.clone();
        probe.gate(&gate).await;
        panic!("half done");
    }
}

fn is_chain(outcome: &Result<(), Refusal>) -> bool {
    matches!(outcome, Err(Refusal::CallChain(_)))
}

/// The status and text of an answer of this worker.
async fn ask(ctx: &Context, path: &str) -> String {
    let answer = ctx
        .cluster()
        .get(format!("/{path}"))
        .send()
        .await
        .expect("an answer");
    let status = answer.status().as_u16();
    format!("{status} {}", answer.text().await.expect("text"))
}

#[tokio::test(start_paused = true)]
async fn shared_turns_run_side_by_side() {
    let app = App::of::<Ledger>().await;
    let one = app.client("/t/a/shared/one");
    let two = app.client("/t/a/shared/two");
    app.probe.seen("at one").await;
    app.probe.seen("at two").await;
    app.probe.open("two");
    two.answer().await.assert_ok("two");
    app.probe.open("one");
    one.answer().await.assert_ok("one");
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_turn_runs_alone() {
    let app = App::of::<Ledger>().await;
    let writer = app.client("/t/a/exclusive/writer");
    app.probe.seen("at writer").await;
    let reader = app.client("/t/a/shared/reader");
    let second = app.client("/t/a/exclusive/second");
    settle().await;
    assert!(!app.probe.has("at reader") && !app.probe.has("at second"));
    app.probe.open("writer");
    app.probe.seen("at reader").await;
    settle().await;
    assert!(
        !app.probe.has("at second"),
        "a reader keeps a writer out as well"
    );
    app.probe.open("reader");
    app.probe.seen("at second").await;
    app.probe.open("second");
    for client in [writer, reader, second] {
        assert_eq!(client.answer().await.status, 200);
    }
    // Turns of one id are no matter of another's.
    let held = app.client("/t/a/exclusive/held");
    app.probe.seen("at held").await;
    app.get("/t/b").await.assert_ok("");
    held.leave().await;
}

#[tokio::test(start_paused = true)]
async fn turns_are_first_come_first_served() {
    let app = App::of::<Ledger>().await;
    let first = app.client("/t/a/shared/r1");
    app.probe.seen("at r1").await;
    let mut clients = vec![first];
    for path in [
        "exclusive/w1",
        "shared/r2",
        "shared/r3",
        "exclusive/w2",
        "shared/r4",
    ] {
        clients.push(app.client(&format!("/t/a/{path}")));
        settle().await;
    }
    assert!(!app.probe.has("at r2"), "no reader overtakes a writer");
    app.probe.open("r1");
    app.probe.seen("at w1").await;
    settle().await;
    assert!(!app.probe.has("at r2"));
    app.probe.open("w1");
    app.probe.seen("at r2").await;
    app.probe.seen("at r3").await;
    settle().await;
    assert!(!app.probe.has("at w2") && !app.probe.has("at r4"));
    app.probe.open("r2");
    settle().await;
    assert!(!app.probe.has("at w2"));
    app.probe.open("r3");
    app.probe.seen("at w2").await;
    app.probe.open("w2");
    app.probe.open("r4");
    for client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_be_had_in_time_is_refused() {
    let app = App::of::<Ledger>().await;
    let holder = app.client("/t/a/exclusive/holder");
    app.probe.seen("at holder").await;
    let late = app.client("/t/a/exclusive/late");
    pass(millis(29_900)).await;
    assert!(!late.is_answered());
    pass(millis(200)).await;
    late.answer().await.assert_retry("turn timed out; retry");
    assert!(!app.probe.has("at late"));
    app.probe.open("holder");
    holder.answer().await.assert_ok("holder");
    app.get("/t/a").await.assert_ok("holder");
}

#[tokio::test(start_paused = true)]
async fn the_turn_timeout_is_an_option() {
    let app = App::with::<Ledger>(HostOptions::new().turn_timeout(secs(2))).await;
    let _holder = app.client("/t/a/exclusive/holder");
    app.probe.seen("at holder").await;
    let late = app.client("/t/a");
    pass(millis(2_100)).await;
    assert!(late.is_answered());
    late.answer().await.assert_retry("turn timed out; retry");
}

#[tokio::test(start_paused = true)]
async fn a_bounded_number_of_callers_waits() {
    let app = App::with::<Ledger>(HostOptions::new().max_waiting(2)).await;
    let holder = app.client("/t/a/exclusive/holder");
    app.probe.seen("at holder").await;
    let one = app.client("/t/a");
    let two = app.client("/t/a");
    settle().await;
    app.get("/t/a")
        .await
        .assert_retry("too many waiting turns; retry");
    // Whoever leaves makes room.
    one.leave().await;
    let three = app.client("/t/a");
    settle().await;
    assert!(!three.is_answered());
    app.probe.open("holder");
    for client in [two, three] {
        client.answer().await.assert_ok("holder");
    }
    holder.answer().await.assert_ok("holder");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_writer_whose_client_left_holds_nobody_up_and_does_not_run() {
    let app = App::of::<Ledger>().await;
    let holder = app.client("/t/a/shared/holder");
    app.probe.seen("at holder").await;
    let writer = app.client("/t/a/exclusive/writer");
    settle().await;
    let reader = app.client("/t/a");
    settle().await;
    assert!(!reader.is_answered());
    writer.leave().await;
    reader.answer().await.assert_ok("");
    app.probe.open("holder");
    holder.answer().await.assert_ok("holder");
    assert!(!app.probe.has("at writer"));
}

#[tokio::test(start_paused = true)]
async fn a_shared_turn_within_a_shared_one_runs_even_before_a_waiting_writer() {
    let app = App::of::<Ledger>().await;
    let outer = app.client("/t/a/shared-ask/t/a");
    app.probe.seen("at ask").await;
    let writer = app.client("/t/a/exclusive/writer");
    settle().await;
    app.probe.open("ask");
    outer.answer().await.assert_ok("200 ");
    app.probe.open("writer");
    writer.answer().await.assert_ok("writer");
}

#[tokio::test(start_paused = true)]
async fn any_other_turn_within_one_of_the_same_chain_is_refused_and_names_the_chain() {
    let app = App::of::<Ledger>().await;
    app.probe.open("ask");
    app.probe.open("never");
    let cases = [
        (
            "shared-ask/t/a/exclusive/never",
            "/t/a (shared) -> /t/a (exclusive)",
        ),
        ("exclusive-ask/t/a", "/t/a (exclusive) -> /t/a (shared)"),
        (
            "exclusive-ask/t/a/exclusive/never",
            "/t/a (exclusive) -> /t/a (exclusive)",
        ),
        // Through another instance and back.
        (
            "exclusive-ask/t/b/shared-ask/t/a",
            "/t/a (exclusive) -> /t/b (shared) -> /t/a (shared)",
        ),
    ];
    for (path, chain) in cases {
        let answer = app.get(&format!("/t/a/{path}")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains("508 "), "{}", answer.text);
        assert!(answer.text.contains(chain), "{chain} in {}", answer.text);
    }
    assert!(!app.probe.has("at never"));
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_holds_no_turn_of_the_target_may_come_back() {
    let app = App::of::<Ledger>().await;
    let answer = app.get("/t/a/instance-ask/t/a").await;
    let (within, after) = answer.text.split_once("; ").expect("two answers");
    assert!(within.starts_with("508 "), "{within}");
    assert_eq!(after, "200 ");
}

#[tokio::test(start_paused = true)]
async fn an_instance_grants_only_shared_turns_within_shared_ones() {
    let app = App::of::<Ledger>().await;
    app.get("/t/a/nested").await.assert_ok("true true");
}

#[tokio::test(start_paused = true)]
async fn setup_and_teardown_that_call_their_own_instance_are_refused() {
    let app = App::of::<Ledger>().await;
    app.get("/t/selfish").await.assert_ok("");
    assert_eq!(app.probe.events()[0], "508");
    assert!(app.probe.events()[1].contains("/t/selfish"));
    app.host::<Ledger>().abort("selfish");
    app.probe.seen("teardown").await;
    assert!(app.probe.has("teardown 508"));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_handler_waits_for_its_own_turn() {
    let app = App::of::<Ledger>().await;
    let client = app.client("/t/a/spawn");
    app.probe.seen("at spawn").await;
    settle().await;
    assert!(!app.probe.has("task had its turn"));
    app.probe.open("spawn");
    client.answer().await.assert_ok("");
    app.probe.seen("task had its turn").await;
    app.get("/t/a").await.assert_ok("handler,task");
}

#[tokio::test(start_paused = true)]
async fn code_of_the_same_process_takes_turns_like_everybody_else() {
    let app = App::with::<Ledger>(
        HostOptions::new()
            .idle_timeout(secs(10))
            .sweep_interval(secs(1)),
    )
    .await;
    let host = app.host::<Ledger>();
    let mut turn = host.write("a").await.expect("a turn");
    turn.entries.push("from inside".to_owned());
    let reader = app.client("/t/a");
    settle().await;
    assert!(!reader.is_answered());
    // It is work: nobody is evicted under a turn.
    pass(secs(20)).await;
    assert_eq!(host.len(), 1);
    drop(turn);
    reader.answer().await.assert_ok("from inside");
    let shared = host.read("a").await.expect("a turn");
    app.get("/t/a").await.assert_ok("from inside");
    assert_eq!(shared.entries.len(), 1);
    // Within a shared turn of the same process there is no chain: it waits, and gives up in time.
    let refused = bounded(host.write("a")).await;
    assert!(matches!(
        refused,
        Err(Unavailable::Refused(Refusal::TurnTimeout))
    ));
    drop(shared);
    pass(secs(12)).await;
    assert!(host.is_empty());
    assert!(matches!(
        host.read("$").await,
        Err(Unavailable::Refused(Refusal::InvalidId(_)))
    ));
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_the_past_grants_no_turns() {
    let app = App::of::<Ledger>().await;
    let host = app.host::<Ledger>();
    let instance = host.instance("a").await.expect("an instance");
    instance
        .write()
        .await
        .expect("a turn")
        .entries
        .push("old".to_owned());
    host.abort("a");
    app.empty::<Ledger>().await;
    assert!(matches!(
        bounded(instance.read()).await,
        Err(Refusal::Closing)
    ));
    app.get("/t/a").await.assert_ok("");
    assert!(matches!(
        bounded(instance.write()).await,
        Err(Refusal::Closing)
    ));
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_a_value_that_a_panic_has_torn() {
    let app = App::of::<Ledger>().await;
    for path in ["tear", "tear-instance"] {
        let holder = app.client(&format!("/t/a/{path}/{path}"));
        app.probe.seen(&format!("at {path}")).await;
        let waiting: Vec<_> = (0..3).map(|_| app.client("/t/a")).collect();
        settle().await;
        app.probe.open(path);
        assert_eq!(holder.answer().await.status, 500);
        for client in waiting {
            client
                .answer()
                .await
                .assert_retry("instance closing; retry");
        }
        app.get("/t/a").await.assert_ok("");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_a_value_that_a_panic_outside_of_handlers_has_torn() {
    let app = App::of::<Ledger>().await;
    let host = app.host::<Ledger>();
    let holder = domain().spawn(async move {
        let mut turn = host.write("a").await.expect("a turn");
        turn.torn = true;
        turn.probe.clone().gate("tear").await;
        panic!("half done");
    });
    app.probe.seen("at tear").await;
    let waiting = app.client("/t/a");
    settle().await;
    app.probe.open("tear");
    holder.await.expect_err("a panic");
    waiting
        .answer()
        .await
        .assert_retry("instance closing; retry");
    app.get("/t/a").await.assert_ok("");
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_turn_at_an_abort_is_told_that_it_has_not_run() {
    let app = App::of::<Ledger>().await;
    let running = app.client("/t/a/exclusive/never");
    app.probe.seen("at never").await;
    let waiting = app.client("/t/a");
    settle().await;
    app.host::<Ledger>().abort("a");
    running.answer().await.assert_aborted();
    waiting
        .answer()
        .await
        .assert_retry("instance closing; retry");
    app.get("/t/a").await.assert_ok("");
}

/// Counts who is inside.
#[derive(Default)]
struct Room {
    inside: AtomicI64,
    visits: AtomicU64,
}

const EXCLUSIVE: i64 = 1_000_000;

struct Visit<'a>(&'a Room, i64);

impl Room {
    fn enter(&self, weight: i64) -> Visit<'_> {
        let before = self.inside.fetch_add(weight, Ordering::SeqCst);
        let fits = if weight == EXCLUSIVE {
            before == 0
        } else {
            before < EXCLUSIVE
        };
        assert!(fits, "{before} were inside");
        self.visits.fetch_add(1, Ordering::SeqCst);
        Visit(self, weight)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(self.1, Ordering::SeqCst);
    }
}

#[pinned_api]
impl Room {
    #[route::get("/shared/{yields}")]
    async fn shared(&self, Path(yields): Path<u32>) {
        let _visit = self.enter(1);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }

    #[route::get("/exclusive/{yields}")]
    async fn exclusive(&mut self, Path(yields): Path<u32>) {
        let _visit = self.enter(EXCLUSIVE);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_exclusive_stays_alone_and_nobody_waits_for_ever() {
    let options = HostOptions::new()
        .idle_timeout(millis(50))
        .sweep_interval(millis(10));
    let app = Arc::new(App::with::<Room>(options).await);
    let callers: Vec<_> = (0..8_u64)
        .map(|seed| {
            let app = Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("turns")
                    .expect("a label");
                let host = app.host::<Room>();
                for _ in 0..150 {
                    let (choice, yields) = (rng.u64() % 6, rng.u64() % 4);
                    let path = match choice {
                        0 | 1 => format!("/t/a/shared/{yields}"),
                        _ => format!("/t/a/exclusive/{yields}"),
                    };
                    match choice {
                        // Comes, and perhaps goes before it has had its turn.
                        0 | 2 => {
                            let client = app.client(&path);
                            for _ in 0..yields {
                                tokio::task::yield_now().await;
                            }
                            client.hang_up();
                        }
                        4 => {
                            let turn = host.write("a").await.expect("a turn");
                            let _visit = turn.enter(EXCLUSIVE);
                            tokio::task::yield_now().await;
                        }
                        5 => {
                            let turn = host.read("a").await.expect("a turn");
                            let _visit = turn.enter(1);
                            tokio::task::yield_now().await;
                        }
                        _ => assert_eq!(app.get(&path).await.status, 200),
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let patience = domain().timeout(secs(60), caller).await;
        patience
            .expect("nobody waits for ever")
            .expect("nobody met anybody");
    }
    // Every count is back at zero: it is evicted as idle.
    let evicted = domain().timeout(secs(30), app.empty::<Room>()).await;
    evicted.expect("no count was leaked");
}
