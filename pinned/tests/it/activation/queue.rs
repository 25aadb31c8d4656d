//! Setups that share, wait and are refused (H4.1 to H4.4).

use super::*;

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
    let refused = app.socket("/t/c/socket").await.expect_err("not accepted");
    refused.assert_retry("activation queue full; retry");
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
