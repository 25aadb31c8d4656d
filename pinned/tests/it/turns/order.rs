//! Who runs beside whom, and who waits for how long.

use super::*;

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
async fn callers_that_waited_for_the_setup_have_their_turns_as_they_came() {
    let app = App::of::<Ledger>().await;
    let names: Vec<String> = (0..16).map(|caller| format!("w{caller}")).collect();
    let mut clients = Vec::new();
    for name in &names {
        app.probe.open(name);
        clients.push(app.client(&format!("/t/slow/exclusive/{name}")));
        settle().await;
    }
    app.probe.open("slow");
    for client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    app.get("/t/slow").await.assert_ok(&names.join(","));
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
