//! The lease that heartbeats renew (W7), and what requests meet meanwhile.

use serde_json::json;

use super::{HEARTBEAT, Script, attested, touch};
use crate::app::{App, pass};
use crate::scene::Scene;

async fn warm(app: &App, id: &str) -> crate::app::Reply {
    let call = app.get(&format!("/actors/{id}")).epoch(1);
    attested(app, call, "session-1").send().await
}

#[tokio::test(start_paused = true)]
async fn when_acks_stop_new_ids_are_refused_and_then_everything_until_one_comes() {
    // W17.3, W7.3, W7.4, W7.5
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    for _ in 0..5 {
        script.break_off(HEARTBEAT);
    }
    pass(9_500).await;
    assert_eq!(warm(&app, "a").await.status, 200);
    // 15 s less the buffer of 5 s.
    pass(1_000).await;
    warm(&app, "b")
        .await
        .assert_refused("lease unhealthy; refusing new activations");
    assert_eq!(warm(&app, "a").await.status, 200);
    assert!(app.worker.is_ready());
    pass(5_000).await;
    warm(&app, "a")
        .await
        .assert_refused("lease expired; not serving");
    assert!(!app.worker.is_ready());
    pass(4_500).await;
    assert_eq!(warm(&app, "a").await.status, 200);
    assert!(app.worker.is_ready());
    assert_eq!(script.count("/registry/register"), 1);
    assert_eq!(app.worker.stats()["leaseFlaps"], 1);
}

#[tokio::test(start_paused = true)]
async fn only_tokens_of_the_session_in_force_are_taken() {
    // W8.6, H2.1
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    app.get("/actors/a")
        .send()
        .await
        .assert_error(403, "invalid attestation");
    assert_eq!(warm(&app, "a").await.status, 200);
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    pass(3_100).await;
    warm(&app, "a")
        .await
        .assert_error(403, "invalid attestation");
    let call = app.get("/actors/a").epoch(1);
    assert_eq!(attested(&app, call, "session-2").send().await.status, 200);
}
