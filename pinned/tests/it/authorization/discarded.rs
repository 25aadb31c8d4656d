//! What a denial leaves of a cold instance (H2.17 to H2.20, E1 to E7).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_cold_denial_leaves_nothing_behind() {
    // H2.17, H2.19, H2.20
    let place = placed().await;
    for what in ["deny", "fail", "http", "redirect", "panic"] {
        place.ask("/vaults/ada", what).send().await;
        settle().await;
        assert_eq!(place.host.len(), 0, "{what}");
    }
    assert_eq!(place.counts(), (0, 0, 5));
    assert_eq!(place.board.released().len(), 5);
    // The epoch of a discarded placement is spent; a warm instance is never discarded.
    place.ask("/vaults/bob", "deny").epoch(3).send().await;
    settle().await;
    let again = place.ask("/vaults/bob", "").epoch(3).send().await;
    again.assert_refused("released placement epoch; retry");
    place
        .ask("/vaults/bob", "")
        .epoch(4)
        .send()
        .await
        .assert_ok("bob in");
    place.ask("/vaults/bob", "deny").epoch(4).send().await;
    settle().await;
    assert_eq!(place.host.len(), 1);
    assert_eq!(
        place.board.released().last(),
        Some(&("/vaults/bob".to_owned(), Some(3)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_during_a_discard_is_told_to_come_back() {
    // H2.20
    let place = placed().await;
    let gate = Gate::closed();
    place.board.hold(&gate);
    place.ask("/vaults/ada", "deny").send().await;
    gate.reached(1).await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_refused("instance closing; retry");
    gate.open();
    settle().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
}

#[tokio::test(start_paused = true)]
async fn a_denial_leaves_the_instance_to_whoever_is_still_being_authorized() {
    // H2.18, E1
    let place = local().await;
    let other = place.passes(0, "").begin().await;
    place.door.gates[0].reached(1).await;
    assert_eq!(
        place.ask("/vaults/ada", "deny").send().await.status,
        StatusCode::UNAUTHORIZED
    );
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[0].open();
    other.await.unwrap().assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_last_of_two_denials_discards() {
    // H2.18, E2
    let place = local().await;
    let first = place.passes(0, "deny").begin().await;
    let last = place.passes(1, "deny").begin().await;
    place.door.gates[0].open();
    assert_eq!(first.await.unwrap().status, StatusCode::UNAUTHORIZED);
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[1].open();
    assert_eq!(last.await.unwrap().status, StatusCode::UNAUTHORIZED);
    settle().await;
    assert_eq!(place.counts(), (0, 0, 1));
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_last_discards_as_well() {
    // H2.17, H2.18, E3
    let place = local().await;
    let first = place.passes(0, "deny").begin().await;
    let last = place.passes(1, "").begin().await;
    place.door.gates[0].open();
    first.await.unwrap();
    last.abort();
    settle().await;
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_socket_client_who_leaves_while_another_is_authorized_changes_nothing() {
    // H2.18, E4
    let place = local().await;
    let chat = "/vaults/ada/chat";
    let leaver = spawn(place.passes(0, "").path(chat).connect());
    let stayer = spawn(place.passes(1, "").path(chat).connect());
    place.door.gates[1].reached(1).await;
    leaver.abort();
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[1].open();
    let mut socket = stayer.await.unwrap().expect("accepted");
    assert_eq!(frame(&mut socket).await, "ada");
    assert_eq!((place.handled(), place.counts()), (1, (1, 1, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_denial_does_not_touch_an_activation_under_way() {
    // H2.17, E5
    let place = place(HostOptions::new(), door(Some(Gate::closed())), true).await;
    let served = place.ask("/vaults/ada", "").begin().await;
    place.door.setup.as_ref().unwrap().reached(1).await;
    assert_eq!(
        place.ask("/vaults/ada", "deny").send().await.status,
        StatusCode::UNAUTHORIZED
    );
    settle().await;
    place.door.setup.as_ref().unwrap().open();
    served.await.unwrap().assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 0));
    assert!(place.board.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn denied_ids_do_not_starve_an_allowed_one() {
    // H2.19, E6
    let place = place(HostOptions::new().max_instances(1), door(None), false).await;
    for n in 0..10 {
        let reply = place.ask(&format!("/vaults/id-{n}"), "deny").send().await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
        settle().await;
    }
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 10));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_being_authorized_when_the_close_begins_does_not_run() {
    // H5.1
    let place = placed().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    let call = place.passes(0, "").begin().await;
    place.host.wind_down("ada", Some(std::time::Duration::ZERO));
    place.door.gates[0].open();
    call.await
        .unwrap()
        .assert_refused("instance closing; retry");
    assert_eq!(place.handled(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn denials_and_admissions_from_many_threads_never_tear_an_instance() {
    // H2.17, H2.18, H2.21: whoever is admitted is served or told to come back, and what is left at the end is what
    // the counts say.
    let place = Arc::new(placed().await);
    let clients: Vec<_> = (0..64)
        .map(|n| {
            let place = Arc::clone(&place);
            spawn(async move {
                for round in 0..20 {
                    let what = if (n + round) % 2 == 0 { "deny" } else { "" };
                    let reply = place
                        .ask(&format!("/vaults/id-{}", round % 4), what)
                        .send()
                        .await;
                    let status = reply.status.as_u16();
                    assert!(
                        matches!(status, 200 | 401 | 503),
                        "{status}: {}",
                        reply.body
                    );
                    if status == 503 {
                        reply.assert_refused("instance closing; retry");
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    place.app.worker.abort_all();
    place.app.worker.drain(None).await;
    assert_eq!(place.host.len(), 0);
    assert_eq!(place.host.evictions(), place.board.released().len() as u64);
}
