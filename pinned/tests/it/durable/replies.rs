//! Answers that are held until what their handlers enlisted is durable (D15.4).

use axum::body::to_bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::StatusCode;

use super::account::{World, world, world_over};
use super::store::{Switched, Writes};
use crate::app::{Reply, pass, settle};
use crate::wind_down::begin_drain;

/// One instance, resident, with the balance 1, and a store that parks from here on.
async fn parked() -> (World, crate::app::Gate) {
    let world = world().await;
    world.post("/add/1").await.assert_ok("1");
    let gate = world.store.park();
    (world, gate)
}

/// The outcome is unknown, and so nothing promises that the handler has not run.
#[track_caller]
fn assert_unknown(reply: &Reply) {
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE, "{reply:?}");
    assert!(reply.detail().contains("outcome is unknown"), "{reply:?}");
    assert!(!reply.headers.contains_key("pinned-refusal"), "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_held_and_the_instance_is_not() {
    let (world, gate) = parked().await;
    let held = world.begin("/add/1").await;
    pass(60_000).await;
    assert!(!held.is_finished());
    // Whoever comes meanwhile sees the change, which is not durable yet.
    assert_eq!(world.get("").await, "2");
    world.post("/loose/1").await.assert_ok("3");
    assert_eq!(world.row(), Some((false, r#"{"balance":1}"#.to_owned())));
    gate.open();
    held.await.expect("an answer").assert_ok("2");
    settle().await;
    assert_eq!(world.row(), Some((false, r#"{"balance":3}"#.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waited_is_held_as_one_that_did_not() {
    let (world, gate) = parked().await;
    let held = world.begin("/slow/1").await;
    world.slow.open();
    pass(1_000).await;
    assert!(!held.is_finished());
    assert_eq!(world.get("").await, "2");
    gate.open();
    held.await.expect("an answer").assert_ok("2");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_effects_of_its_own_waits_for_those_before_it() {
    // D15.2
    let (world, gate) = parked().await;
    world.post("/nothing").await.assert_ok("nothing");
    let first = world.begin("/add/1").await;
    let second = world.begin("/nothing").await;
    pass(1_000).await;
    assert!(!first.is_finished() && !second.is_finished());
    gate.open();
    first.await.expect("an answer").assert_ok("2");
    second.await.expect("an answer").assert_ok("nothing");
    world.post("/nothing").await.assert_ok("nothing");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_changes_nothing() {
    // H5.4 as decided here
    let (world, gate) = parked().await;
    for path in ["/add/1", "/slow/1"] {
        let held = world.begin(path).await;
        world.slow.open();
        settle().await;
        held.abort();
        let _ = held.await;
    }
    assert_eq!(world.get("").await, "3");
    gate.open();
    settle().await;
    assert_eq!(world.row(), Some((false, r#"{"balance":3}"#.to_owned())));
    assert_eq!(world.host().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_answered_together() {
    // D14.4
    let (world, gate) = parked().await;
    world.store.writes();
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(world.begin("/add/1").await);
    }
    gate.open();
    let replies = join_all(held).await;
    for (n, reply) in replies.into_iter().enumerate() {
        reply.expect("an answer").assert_ok(&(n + 2).to_string());
    }
    // The one that was on its way, and all others in one.
    assert_eq!(world.store.writes().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_are_each_answered_by_their_own_value() {
    let world = world().await;
    let adding = (0..200).map(|_| {
        let call = world.app.post("/accounts/a/add/1");
        crate::app::spawn(call.send())
    });
    let mut seen = Vec::new();
    for reply in join_all(adding).await {
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        seen.push(reply.body.parse::<u64>().expect("a number"));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
    assert_eq!(world.row(), Some((false, r#"{"balance":200}"#.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_makes_it_503_and_the_next_request_meets_what_is_durable() {
    // D15.4, D16.1, D16.2
    for path in ["/add/1", "/slow/1", "/stream/1", "/refuse/1", "/note/1"] {
        let world = world().await;
        world.post("/add/1").await.assert_ok("1");
        assert_eq!(world.get("/seen").await, "1");
        world.post("/note/0").await;
        settle().await;
        world.slow.open();
        world.store.set(Writes::Fail);
        assert_unknown(&world.post(path).await);
        world.store.set(Writes::Apply);
        // Refused while the old one goes, or served by the new one, and never by the old one.
        pass(1_000).await;
        assert_eq!(world.get("").await, "1", "{path}");
        assert_eq!(world.get("/seen").await, "1", "{path}");
        world.post("/add/1").await.assert_ok("2");
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_wait_hear_of_the_failure() {
    let (world, gate) = parked().await;
    let mut held = Vec::new();
    for path in ["/add/1", "/add/1", "/nothing", "/slow/1"] {
        held.push(world.begin(path).await);
    }
    // The one on its way is fenced off by somebody else, and fails.
    let newer =
        pinned::durability::Claim::new(pinned::durability::InstanceKey::new("/accounts", "a"), 1);
    use pinned::durability::{RowFilter, StateStore};
    world
        .store
        .disk
        .list(newer, RowFilter::all())
        .await
        .expect("read");
    world.slow.open();
    settle().await;
    gate.open();
    for held in held {
        assert_unknown(&held.await.expect("an answer"));
    }
    assert_eq!(world.row(), Some((false, r#"{"balance":1}"#.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_the_handler_returns_is_held_too() {
    let (world, gate) = parked().await;
    let held = world.begin("/refuse/5").await;
    pass(1_000).await;
    assert!(!held.is_finished());
    gate.open();
    assert_eq!(held.await.expect("an answer").status, StatusCode::CONFLICT);
    assert_eq!(world.row(), Some((false, r#"{"balance":6}"#.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_streams_begins_when_its_effects_are_durable() {
    let (world, gate) = parked().await;
    let request = http::Request::post("/accounts/a/stream/1")
        .body(axum::body::Body::empty())
        .expect("a request");
    let mut response = tower::ServiceExt::oneshot(world.app.worker.into_router(), request).boxed();
    settle().await;
    assert!(response.as_mut().now_or_never().is_none());
    gate.open();
    settle().await;
    let response = response.await.expect("infallible");
    assert_eq!(response.status(), StatusCode::OK);
    let body = crate::app::spawn(to_bytes(response.into_body(), 100));
    settle().await;
    assert!(!body.is_finished());
    world.slow.open();
    assert_eq!(body.await.expect("read").expect("whole"), "one two");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_answered_at_once_and_ends_the_instance() {
    let (world, gate) = parked().await;
    let reply = world.post("/panic/5").await;
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
    gate.open();
    pass(1_000).await;
    // What it had enlisted may or may not be durable; here it was cut off.
    assert_eq!(world.get("/seen").await, "1");
    assert_eq!(
        world.get("").await,
        world.row().map_or("0".to_owned(), |(_, doc)| {
            let doc: serde_json::Value = serde_json::from_str(&doc).expect("JSON");
            doc["balance"].to_string()
        })
    );
}

#[tokio::test(start_paused = true)]
async fn an_abort_while_it_is_held_makes_the_outcome_unknown() {
    // D17.3
    let (world, gate) = parked().await;
    let held = [world.begin("/add/1").await, world.begin("/slow/1").await];
    world.host().abort("a");
    let [added, slow] = held;
    assert_unknown(&added.await.expect("an answer"));
    // This handler was cut off.
    let slow = slow.await.expect("an answer");
    assert_eq!(slow.status, StatusCode::SERVICE_UNAVAILABLE, "{slow:?}");
    gate.open();
    pass(1_000).await;
    assert_eq!(world.get("/seen").await, "1");
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_waits_for_what_is_held_and_answers_it() {
    // D17.4, T17.1
    for how in ["wind-down", "drain", "shutdown"] {
        let (world, gate) = parked().await;
        let held = world.begin("/add/1").await;
        let mut ends = Vec::new();
        match how {
            "wind-down" => world
                .host()
                .wind_down("a", Some(std::time::Duration::from_secs(60))),
            "drain" => {
                let minute = Some(std::time::Duration::from_secs(60));
                ends.push(begin_drain(&world.app.worker, minute).await);
            }
            _ => {
                let app = world.app.clone();
                ends.push(crate::app::spawn(async move { app.shutdown().await }));
            }
        }
        pass(5_000).await;
        assert!(!held.is_finished(), "{how}");
        gate.open();
        held.await.expect("an answer").assert_ok("2");
        for end in ends {
            end.await.expect("an end");
        }
        settle().await;
        assert_eq!(
            world.row(),
            Some((false, r#"{"balance":2}"#.to_owned())),
            "{how}"
        );
        assert_eq!(world.host().len(), 0, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_answer_is_held_is_not_idle() {
    // D17.1
    let (world, gate) = parked().await;
    let held = world.begin("/add/1").await;
    pass(60_000).await;
    assert_eq!((world.host().len(), world.host().evictions()), (1, 0));
    gate.open();
    held.await.expect("an answer").assert_ok("2");
    pass(10_000).await;
    assert_eq!((world.host().len(), world.host().evictions()), (0, 1));
    assert_eq!(world.get("").await, "2");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_fetched_after_the_instance_is_gone_is_still_a_success() {
    // D15.3: it was durable when the instance ended.
    let (world, gate) = parked().await;
    gate.open();
    let request = http::Request::post("/accounts/a/slow/1")
        .body(axum::body::Body::empty())
        .expect("a request");
    let mut response = tower::ServiceExt::oneshot(world.app.worker.into_router(), request).boxed();
    assert!(response.as_mut().now_or_never().is_none());
    world.slow.open();
    pass(60_000).await;
    assert_eq!(world.host().len(), 0);
    let response = response.await.expect("infallible");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(world.get("").await, "2");
}

#[tokio::test(start_paused = true)]
async fn what_a_durable_answer_has_confirmed_survives_a_crash() {
    // D15.3
    let world = world().await;
    world.post("/add/7").await.assert_ok("7");
    let disk = world.store.disk.clone();
    world.store.set(Writes::StopAfter(0));
    let lost = world.begin("/add/1").await;
    pass(1_000).await;
    assert!(!lost.is_finished());
    drop(world);
    let world = world_over(Switched::over_disk(disk)).await;
    assert_eq!(world.get("").await, "7");
}
