//! Chains of calls that come back.

use super::*;

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
async fn a_task_that_holds_a_turn_is_part_of_its_chain() {
    let app = App::of::<Ledger>().await;
    app.get("/t/a/spawn-ask").await.assert_ok("");
    app.probe.seen("508").await;
    app.get("/t/a").await.assert_ok("");
}
