//! Drains of a whole worker (H10.4, H10.5, H10.12).

use super::{begin_drain, busy, listen};
use crate::app::{App, pass, settle};
use crate::scene::{Scene, actors, get, post, quick, seconds, seconds_left};

#[tokio::test(start_paused = true)]
async fn the_two_drains_end_each_for_itself() {
    // H10.4, E18
    let scene = Scene::default();
    let told = listen(&scene);
    let (app, _work) = busy(&scene).await;
    let (worker, ctx) = (&app.worker, scene.context());
    let _drain = begin_drain(worker, Some(seconds(30))).await;
    worker.server_drain(Some(Some(seconds(10))));
    assert_eq!(seconds_left(&ctx), Some(10));
    worker.server_drain(None);
    assert_eq!(seconds_left(&ctx), Some(30));
    worker.server_drain(Some(Some(seconds(5))));
    worker.revoke_drain();
    assert_eq!((seconds_left(&ctx), worker.is_draining()), (Some(5), true));
    worker.server_drain(None);
    assert_eq!((seconds_left(&ctx), worker.is_draining()), (None, false));
    assert!(!ctx.lease().winding_down());
    // H10.10: the revocation is told as well.
    assert_eq!(*told.lock(), [Some(30), Some(10), Some(30), Some(5), None]);
}

#[tokio::test(start_paused = true)]
async fn the_latest_drain_replaces_the_one_before() {
    // H10.4
    let scene = Scene::default();
    let told = listen(&scene);
    let (app, _work) = busy(&scene).await;
    let first = begin_drain(&app.worker, Some(seconds(5))).await;
    let second = begin_drain(&app.worker, None).await;
    pass(60_000).await;
    // H10.12: without a deadline nothing is ever cut off, and neither drain has resolved.
    assert!(!first.is_finished() && !second.is_finished());
    assert_eq!(
        (actors(&app).len(), scene.context().lease().winding_down()),
        (1, true)
    );
    app.worker.revoke_drain();
    settle().await;
    assert!(first.is_finished() && second.is_finished());
    // H10.10: no deadline and no wind-down are both told as none.
    assert_eq!(*told.lock(), [Some(5), None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_revoked_returns_although_the_server_drains_on() {
    // H10.12, H10.4
    let scene = Scene::default();
    let (app, _work) = busy(&scene).await;
    app.worker.server_drain(Some(None));
    let drain = begin_drain(&app.worker, None).await;
    assert!(!drain.is_finished());
    app.worker.revoke_drain();
    drain.await.expect("revoked");
    assert!(app.worker.is_draining() && !app.worker.is_drained());
}

#[tokio::test(start_paused = true)]
async fn a_drain_resolves_when_every_host_has_nothing_left() {
    // H10.12, H10.5, W1.6
    let scene = Scene::default();
    let (work, release) = (scene.hold("work"), scene.hold("release"));
    let builder = scene
        .placed_worker(quick())
        .host_with::<crate::scene::Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    get(&app, "/actors/a").text().await;
    let busy = post(&app, "/others/b/work").begin().await;
    let drain = begin_drain(&app.worker, None).await;
    get(&app, "/others/c")
        .send()
        .await
        .assert_refused("host draining; retry");
    work.open();
    busy.await.expect("an answer").assert_ok("worked");
    // No record is left, but two releases go on behind their closes.
    pass(5_100).await;
    let others = app
        .worker
        .hosted_at::<crate::scene::Actor>("/others")
        .expect("hosted");
    assert!(actors(&app).is_drained() && others.is_drained());
    assert!(!drain.is_finished() && !app.worker.is_drained());
    release.open();
    drain.await.expect("drained");
    assert!(app.worker.is_drained());
}
