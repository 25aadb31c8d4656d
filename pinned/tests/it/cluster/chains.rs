//! How deep calls go, and where they may not come back to (W14.3).

use super::*;

#[tokio::test(start_paused = true)]
async fn calls_go_fifty_deep_and_no_deeper() {
    // W14.3
    let app = local().await;
    let reply = app
        .get(&format!("/nodes/top/down/{MAX_CALL_DEPTH}"))
        .text()
        .await;
    assert!(reply.ends_with("200 bottom"), "{reply}");
    let reply = app
        .get(&format!("/nodes/top/down/{}", MAX_CALL_DEPTH + 1))
        .text()
        .await;
    assert!(
        reply.ends_with("cluster calls may be 50 deep; this one would be deeper"),
        "{reply}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_depth_is_that_of_the_request() {
    // W14.3
    let app = App::start(hosts().placements(Arc::new(Board::default()))).await;
    let at = |path: &str, depth| {
        let claims = app.claims().with_caller("/far/away", depth);
        let token = pinned::wire::attestation::mint(app.worker.secret(), &claims);
        app.get(path).header("pinboard-attestation", token)
    };
    // Adopted from the token, and sequential calls do not add up.
    let reply = at("/nodes/a/twice/peers/b/caller", 7).send().await;
    reply.assert_ok("200 /nodes/a at 8; 200 /nodes/a at 8");
    at("/nodes/a/shared/peers/b/caller", 49)
        .send()
        .await
        .assert_ok("200 /nodes/a at 50");
    for depth in [50, 51, u64::from(u32::MAX), u64::MAX] {
        let text = at("/nodes/a/shared/peers/b/caller", depth).text().await;
        assert!(text.contains("50 deep"), "{text}");
    }
    // Whoever is nobody's call starts at 0.
    app.get("/nodes/a/shared/peers/b/caller")
        .attested()
        .send()
        .await
        .assert_ok("200 /nodes/a at 1");
    // A task inherits it, and so does a setup.
    at("/nodes/a/spawned/peers/b/caller", 7)
        .send()
        .await
        .assert_ok("200 /nodes/a at 8");
    at("/nodes/greets/greeting", 7)
        .send()
        .await
        .assert_ok("200 /nodes/greets at 8");
}

#[tokio::test(start_paused = true)]
async fn authorizers_that_call_each_other_come_to_an_end() {
    // W14.3
    let said = Said::default();
    let app = App::start(hosts().state(said.clone())).await;
    let reply = app.get("/loops/0").send().await;
    assert_eq!(reply.status, StatusCode::IM_A_TEAPOT);
    assert_eq!(
        *said.0.lock(),
        "51: cluster calls may be 50 deep; this one would be deeper"
    );
    settle().await;
    assert_eq!(app.worker.hosted::<Loop>().unwrap().len(), 0);
}

/// A refusal of a call that would wait for its own ancestor.
fn chain(links: &str) -> String {
    format!("508 {{\"detail\":\"call chain would deadlock: {links}\"}}")
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_comes_back_to_a_held_turn_is_refused_by_name() {
    let app = local().await;
    let cases = [
        (
            "/nodes/a/exclusive/nodes/a",
            chain("/nodes/a (exclusive) -> /nodes/a (shared)"),
        ),
        (
            "/nodes/a/shared/nodes/a/exclusive/nodes/b",
            chain("/nodes/a (shared) -> /nodes/a (exclusive)"),
        ),
        (
            "/nodes/a/exclusive/peers/b/back/nodes/a",
            format!(
                "200 {}",
                chain("/nodes/a (exclusive) -> /peers/b (shared) -> /nodes/a (shared)")
            ),
        ),
        // An authorizer is a link as well.
        (
            "/nodes/a/exclusive/checked/x",
            format!(
                "200 {}",
                chain("/nodes/a (exclusive) -> /checked/x (no turn) -> /nodes/a (shared)")
            ),
        ),
    ];
    for (path, said) in cases {
        app.get(path).send().await.assert_ok(&said);
    }
    // A turn that was given back is in nobody's way.
    let said = app.get("/nodes/a/taken/nodes/a").text().await;
    assert_eq!(
        said,
        format!(
            "{}; 200 a",
            chain("/nodes/a (exclusive) -> /nodes/a (shared)")
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_setup_or_teardown_that_calls_its_own_instance_is_refused_by_name() {
    let at_the_end = Said::default();
    let app = App::start(hosts().state(at_the_end.clone())).await;
    let said = app.get("/nodes/calls-itself/greeting").text().await;
    let links = "/nodes/calls-itself (exclusive) -> /nodes/calls-itself (exclusive)";
    assert_eq!(said, chain(links));

    app.get("/nodes/calls-itself-at-the-end")
        .send()
        .await
        .assert_ok("calls-itself-at-the-end");
    app.worker
        .hosted::<Node>()
        .unwrap()
        .abort("calls-itself-at-the-end");
    settle().await;
    let links =
        "/nodes/calls-itself-at-the-end (exclusive) -> /nodes/calls-itself-at-the-end (exclusive)";
    assert_eq!(*at_the_end.0.lock(), chain(links));
    // Torn down all the same, and there again for whoever asks next.
    app.get("/nodes/calls-itself-at-the-end")
        .send()
        .await
        .assert_ok("calls-itself-at-the-end");
}

#[tokio::test(start_paused = true)]
async fn two_chains_that_wait_for_each_other_end_at_the_turn_timeout() {
    // No chain holds what it asks for, so that neither is refused at once.
    let gate = Gate::closed();
    let options = HostOptions::new()
        .namespace("/peers")
        .turn_timeout(Duration::from_secs(5));
    let app = App::start(
        PinnedWorker::builder()
            .host_with::<Peer>(options)
            .state(gate.clone()),
    )
    .await;
    let there = app.get("/peers/a/swap/peers/b/caller").begin().await;
    let back = app.get("/peers/b/swap/peers/a/caller").begin().await;
    gate.reached(2).await;
    gate.open();
    let said = [there.await.unwrap().body, back.await.unwrap().body];
    assert!(
        said.iter()
            .any(|said| said.contains("turn timed out; retry")),
        "{said:?}"
    );
    app.get("/peers/a/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    app.get("/peers/b/caller")
        .send()
        .await
        .assert_ok("Anonymous");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_gave_up_is_refused_no_turn() {
    // Nobody waits for it any more, so that it may wait for whom it likes.
    let (said, gate) = (Said::default(), Gate::closed());
    let app = App::start(hosts().state(said.clone()).state(gate.clone())).await;
    let reply = app.get("/nodes/a/impatient/peers/b/swap/nodes/a");
    reply.send().await.assert_ok("no answer within 2s");
    gate.open();
    settle().await;
    assert_eq!(*said.0.lock(), "200 a");
}

#[tokio::test(start_paused = true)]
async fn a_setup_whose_caller_has_left_is_refused_no_turn() {
    let (nodes, gate) = (Nodes::default(), Gate::closed());
    let app = App::start(hosts().state(nodes.clone()).state(gate.clone())).await;
    *nodes.0.lock() = app.worker.hosted::<Node>();
    app.get("/nodes/a/awaits/slow")
        .send()
        .await
        .assert_ok("false");
    // It goes on (H4.8), and nobody waits for it.
    gate.open();
    settle().await;
    app.get("/nodes/slow/greeting")
        .send()
        .await
        .assert_ok("200 a");
}
