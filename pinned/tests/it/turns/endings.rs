//! Turns under panics, aborts and closes.

use super::*;

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

#[tokio::test(start_paused = true)]
async fn a_teardown_goes_on_at_once_when_a_turn_that_was_held_through_a_handle_comes_back() {
    // H11.8: whether it has waited for it with patience, or without.
    for held_for in [millis(1), millis(600_000)] {
        let app = App::of::<Ledger>().await;
        let host = app.host::<Ledger>();
        let instance = host.instance("a").await.expect("an instance");
        let turn = instance.write().await.expect("a turn");
        host.abort("a");
        domain().sleep(held_for).await;
        assert_eq!(host.len(), 1, "nothing is torn down under a turn");
        drop(turn);
        settle().await;
        assert!(host.is_empty(), "after {held_for:?}");
    }
}
