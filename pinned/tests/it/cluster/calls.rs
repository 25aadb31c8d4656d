//! What arrives, and what comes back.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_relayed_refusal_makes_no_promise_for_the_one_who_relays_it() {
    // H3.5: the marker would send pinboard elsewhere with the wrong id.
    let full = HostOptions::new().namespace("/peers").max_instances(1);
    let builder = PinnedWorker::builder()
        .host_with::<Peer>(full)
        .host::<Relay>("/relays");
    let app = App::start(builder).await;
    app.get("/peers/a/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    let reply = app.get("/relays/r").send().await;
    reply.assert_error(503, "instance capacity reached; retry");
    assert_eq!(reply.header("pinned-refusal"), None);
    assert_eq!(reply.header("retry-after"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn the_caller_is_attested() {
    // W14.1, W14.5
    let app = local().await;
    app.get("/nodes/a/shared/peers/b/caller")
        .send()
        .await
        .assert_ok("200 /nodes/a at 1");
    // A sibling namespace, in the other direction.
    app.get("/peers/b/back/nodes/a")
        .send()
        .await
        .assert_ok("200 a");
}

#[tokio::test(start_paused = true)]
async fn method_query_and_body_arrive_and_the_status_comes_back() {
    // W14.4, W14.5
    let app = local().await;
    app.get("/peers/b/checks")
        .send()
        .await
        .assert_ok("201 x=1&y=a+b the body; x-mine");
    app.get("/nodes/a/shared/peers/b/nowhere")
        .send()
        .await
        .assert_ok(r#"404 {"detail":"Not Found"}"#);
    app.get("/nodes/a/shared/peers/a%24/caller")
        .send()
        .await
        .assert_ok(r#"400 {"detail":"id must contain only [A-Za-z0-9._~-]"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_mistake_in_a_call_is_an_error_before_anything_is_sent() {
    let app = local().await;
    app.get("/peers/b/mistakes")
        .send()
        .await
        .assert_ok("[true, true, true, true]");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_namespace_is_an_error_that_says_why() {
    // W14.7
    let app = local().await;
    let text = app.get("/nodes/a/shared/elsewhere/x/y").text().await;
    assert!(
        text.contains("unknown cluster target /elsewhere/x/y"),
        "{text}"
    );
    assert!(text.contains("no pinboard configured"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_to_oneself_is_reentrant() {
    // W14.5
    let app = local().await;
    app.get("/nodes/a/shared/nodes/a")
        .send()
        .await
        .assert_ok("200 a");
    app.get("/nodes/a/shared/peers/b/back/nodes/a")
        .send()
        .await
        .assert_ok("200 200 a");
}

#[tokio::test(start_paused = true)]
async fn a_registered_worker_attests_its_own_calls() {
    // W14.2, W14.5
    let app = App::start(hosts().placements(Arc::new(Board::default()))).await;
    let reply = app
        .get("/nodes/a/shared/peers/b/caller")
        .attested()
        .send()
        .await;
    reply.assert_ok("200 /nodes/a at 1");
}

#[tokio::test(start_paused = true)]
async fn a_caller_sees_the_refusal_of_a_closing_instance() {
    // W14.5
    let board = Board::default();
    let acknowledged = Gate::closed();
    board.hold(&acknowledged);
    let app = App::start(hosts().placements(Arc::new(board))).await;
    app.get("/nodes/b").attested().send().await.assert_ok("b");
    app.worker.hosted::<Node>().unwrap().abort("b");
    acknowledged.reached(1).await;
    let reply = app.get("/nodes/a/shared/nodes/b").attested().send().await;
    reply.assert_ok(r#"503 {"detail":"instance closing; retry"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_give_up() {
    let app = local().await;
    let said = app.get("/peers/b/impatient").text().await;
    assert_eq!(said, "no answer within 2s");
    // The handler that was called goes on; nothing waits for anything.
    app.get("/nodes/a").send().await.assert_ok("a");
}
