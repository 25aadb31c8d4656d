//! Who is let in, and what is known of them (H2.1 to H2.6).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_registered_worker_needs_an_attestation() {
    // H2.1, H2.2, E30
    let place = placed().await;
    for n in 0..20 {
        let reply = place
            .app
            .get(&format!("/vaults/id-{n}/public"))
            .send()
            .await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (403, r#"{"detail":"invalid attestation"}"#)
        );
        let secret = place.app.worker.secret();
        let reply = place
            .app
            .get(&format!("/vaults/id-{n}"))
            .header("pinboard-proxy-secret", secret)
            .send()
            .await;
        reply.assert_error(403, "invalid attestation");
        let socket = place.app.get(&format!("/vaults/id-{n}/chat"));
        socket
            .refused_socket()
            .await
            .assert_closed_before_acceptance();
    }
    for token in ["", "x", "a.b.c", "\u{e9}"] {
        let reply = place
            .app
            .get("/vaults/ada")
            .header("pinboard-attestation", token)
            .send()
            .await;
        reply.assert_error(403, "invalid attestation");
    }
    let mut claims = place.app.claims();
    claims.aud = "session-0".to_owned();
    let stale = pinned::wire::attestation::mint(place.app.worker.secret(), &claims);
    let reply = place
        .app
        .get("/vaults/ada")
        .header("pinboard-attestation", stale)
        .send()
        .await;
    reply.assert_error(403, "invalid attestation");
    assert_eq!(place.counts(), (0, 0, 0));
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 0);
    place
        .app
        .get("/vaults/ada")
        .attested()
        .send()
        .await
        .assert_ok("ada in");
}

#[tokio::test(start_paused = true)]
async fn in_local_mode_everybody_passes_as_anonymous() {
    // H2.1
    let place = local().await;
    place
        .app
        .get("/vaults/ada/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    // Nobody outside knows the secret, and no other header makes anybody known.
    let forged = place
        .app
        .get("/vaults/ada/caller")
        .header("pinboard-attestation", "a.b.c");
    forged
        .header("pinboard-caller", "/vaults/eve")
        .send()
        .await
        .assert_ok("Anonymous");
}

#[tokio::test(start_paused = true)]
async fn a_verified_caller_reaches_the_handler() {
    // H2.1
    let place = placed().await;
    let claims = place.app.claims().with_caller("/rooms/lobby", 3);
    let token = pinned::wire::attestation::mint(place.app.worker.secret(), &claims);
    let call = place
        .app
        .get("/vaults/ada/caller")
        .header("pinboard-attestation", token);
    call.send()
        .await
        .assert_ok(r#"Instance { ns: "/rooms", id: "lobby", depth: 3 }"#);
}

#[tokio::test(start_paused = true)]
async fn each_route_has_its_own_authorizer() {
    // H2.3, H2.5
    let place = local().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 1);
    // Another one: the default is not asked.
    place
        .ask("/vaults/ada/badge", "deny")
        .header("x-badge", "7")
        .send()
        .await
        .assert_ok("7");
    let reply = place.ask("/vaults/ada/badge", "").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (401, json!({ "message": "no badge" }))
    );
    // None at all.
    place
        .ask("/vaults/ada/public", "deny")
        .send()
        .await
        .assert_ok("public");
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_struct_without_an_authorizer_admits_everybody_as_nobody() {
    // H2.4, H2.5
    let app = App::start(PinnedWorker::builder().host::<Plain>("/plains")).await;
    app.get("/plains/a").send().await.assert_ok("open");
    assert_eq!(
        app.get("/plains/a/guarded").send().await.status,
        StatusCode::PAYMENT_REQUIRED
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_one_route_sees_what_the_authorizer_returned() {
    // H2.5; a guard is an extractor, and as such comes before the activation.
    let place = local().await;
    place
        .app
        .get("/vaults/ada/guarded")
        .send()
        .await
        .assert_ok("guarded");
    let reply = place.app.get("/vaults/bob/guarded").send().await;
    assert_eq!(reply.status, StatusCode::PAYMENT_REQUIRED);
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn the_authorizer_runs_before_the_setup() {
    // H2.6
    let place = place(HostOptions::new(), door(Some(Gate::closed())), false).await;
    let call = place.passes(0, "").begin().await;
    place.door.gates[0].reached(1).await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[0].open();
    let setup = place.door.setup.as_ref().unwrap();
    setup.reached(1).await;
    assert_eq!(place.handled(), 0);
    setup.open();
    call.await.unwrap().assert_ok("ada in");
}
