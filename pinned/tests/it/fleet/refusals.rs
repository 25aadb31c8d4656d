//! What a refusal tells the control plane of the id (P5.9): whoever is told that it is not here places it elsewhere.

use serde_json::json;

use super::{HEARTBEAT, RELEASE, Script, attested, touch};
use crate::app::{App, Call, Reply, pass, settle};
use crate::scene::{Scene, actors, quick, seconds};

/// `/actors/<id>` as the control plane asks for it at `epoch`.
fn ask(app: &App, id: &str, epoch: u64) -> Call {
    let call = app.get(&format!("/actors/{id}")).epoch(epoch);
    attested(app, call, "session-1")
}

#[track_caller]
fn assert_refused(reply: &Reply, reason: &str) {
    assert_eq!(
        (reply.status.as_u16(), reply.header("pinned-refusal")),
        (503, Some(reason)),
        "{}",
        reply.body
    );
    assert_eq!(reply.header("retry-after"), Some("1"));
}

/// A worker that sets up one instance at a time, and whose first one, `first`, waits in its setup.
async fn full_queue(script: &Script, scene: &Scene) -> (App, tokio::task::JoinHandle<Reply>) {
    let options = quick()
        .max_concurrent_activations(1)
        .activation_queue_deadline(seconds(1));
    let app = App::start(script.builder(scene, options)).await;
    pass(1).await;
    let first = ask(&app, "first", 1).begin().await;
    settle().await;
    (app, first)
}

fn setups(scene: &Scene) -> usize {
    let steps = scene.steps();
    steps.iter().filter(|step| *step == "setup").count()
}

#[tokio::test(start_paused = true)]
async fn past_its_lease_a_worker_keeps_what_lives_in_it_and_turns_the_rest_away() {
    // P5.9, H3.2, P4.6
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    for _ in 0..5 {
        script.break_off(HEARTBEAT);
    }
    pass(9_500).await;
    touch(&app, "a", "session-1", 1).await;
    pass(6_000).await;
    let resident = ask(&app, "a", 1).send().await;
    assert_refused(&resident, "busy");
    assert_eq!(resident.detail(), "lease expired; not serving");
    let elsewhere = ask(&app, "b", 4).send().await;
    assert_refused(&elsewhere, "lease-expired");
    // An older epoch changes nothing.
    assert_refused(&ask(&app, "b", 3).send().await, "lease-expired");
    pass(4_000).await;
    ask(&app, "a", 1).send().await.assert_ok("here");
    // `b` may live elsewhere by now; what comes late under its old epochs finds no home here.
    assert_refused(&ask(&app, "b", 4).send().await, "released-epoch");
    assert_refused(&ask(&app, "b", 3).send().await, "stale-epoch");
    ask(&app, "b", 5).send().await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_the_last_work_of_a_drain_is_cut_off_is_told_that_the_id_moves() {
    // P5.10, H3.2, H10.6: the deadline of the drain is the end of the lease as well
    let script = Script::default();
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    scene.hold("work");
    let app = App::start(script.builder(&scene, quick())).await;
    let call = app.post("/actors/a/work").epoch(1);
    let work = attested(&app, call, "session-1").begin().await;
    settle().await;
    let drain = crate::wind_down::begin_drain(&app.worker, Some(seconds(3))).await;
    pass(3_100).await;
    let late = ask(&app, "a", 1).send().await;
    assert_refused(&late, "closing");
    assert_eq!(late.detail(), "lease expired; not serving");
    assert_eq!(script.count(RELEASE), 0);

    teardown.open();
    drain.await.expect("it ends");
    assert_eq!(work.await.expect("an answer").status.as_u16(), 503);
    assert_eq!(script.count(RELEASE), 1);
    // Nobody lives here any more, and what comes late under the old epoch finds no home.
    assert_refused(&ask(&app, "a", 1).send().await, "lease-expired");
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_is_refused_in_the_queue_leaves_it_and_hands_its_placement_back() {
    // P5.9, H4.3, H12.4
    let script = Script::default();
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let (app, first) = full_queue(&script, &scene).await;
    let waiting = ask(&app, "b", 1).begin().await;
    pass(500).await;
    let later = ask(&app, "b", 1).begin().await;
    pass(490).await;
    assert!(!waiting.is_finished() && !later.is_finished());
    pass(20).await;
    // Whoever shares it is told the same, and at once: it is in no queue any more.
    for waiting in [waiting, later] {
        assert_refused(&waiting.await.expect("an answer"), "activation-queue");
    }
    assert_eq!(script.count(RELEASE), 1);
    let released = &script.last(RELEASE)[0];
    assert_eq!(
        (&released["id"], &released["epoch"]),
        (&json!("b"), &json!("1"))
    );
    assert_refused(&ask(&app, "b", 1).send().await, "released-epoch");
    setup.open();
    first.await.expect("an answer").assert_ok("here");
    settle().await;
    assert_eq!((actors(&app).activations(), setups(&scene)), (1, 1));
    assert_refused(&ask(&app, "b", 1).send().await, "released-epoch");
    ask(&app, "b", 2).send().await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn until_its_placement_is_handed_back_the_id_is_closing() {
    // P5.9, H3.3, H3.9
    let script = Script::default();
    let scene = Scene::default();
    let _setup = scene.hold("setup");
    let (app, _first) = full_queue(&script, &scene).await;
    let release = script.hold(RELEASE);
    assert_refused(&ask(&app, "b", 1).send().await, "activation-queue");
    settle().await;
    assert_refused(&ask(&app, "b", 1).send().await, "released-epoch");
    assert_refused(&ask(&app, "b", 2).send().await, "closing");
    release.open();
    settle().await;
    // The epoch that nobody has turned away is good still.
    let again = ask(&app, "b", 2).begin().await;
    settle().await;
    assert!(!again.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_a_wake_up_asked_for_stays_in_the_queue_and_so_does_the_id() {
    // P5.9, H14.3
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let options = quick()
        .max_concurrent_activations(1)
        .activation_queue_deadline(seconds(1));
    let app = App::start(scene.placed_worker(options)).await;
    let _first = ask(&app, "first", 1).begin().await;
    settle().await;
    let early = ask(&app, "b", 1).begin().await;
    settle().await;
    let wake = app.post("/actors/b/_wake").epoch(1);
    let woken = attested(&app, wake, "session-1").send().await;
    assert_eq!(woken.status, 202);
    let late = ask(&app, "b", 1).send().await;
    for refused in [early.await.expect("an answer"), late] {
        assert_refused(&refused, "busy");
        assert_eq!(refused.detail(), "activation queue full; retry");
    }
    setup.open();
    settle().await;
    assert_eq!(
        (actors(&app).activations(), actors(&app).evictions()),
        (2, 0)
    );
    ask(&app, "b", 1).send().await.assert_ok("here");
}
