//! What the control plane asks of a worker (W10).

use serde_json::json;

use super::{HEARTBEAT, REGISTER, Script};
use crate::app::{App, Reply, pass};
use crate::scene::{Scene, quick};

async fn ask(app: &App, secret: &str, query: &str) -> Reply {
    app.get(&format!("/_pinned/challenge{query}"))
        .header("pinboard-proxy-secret", secret)
        .send()
        .await
}

#[tokio::test(start_paused = true)]
async fn only_the_latest_challenge_is_answered_and_only_to_those_who_know_the_secret() {
    // W10.1, W10.2, W2.2
    let script = Script::default();
    let gate = script.hold(REGISTER);
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(1).await;
    let secret = app.worker.secret().to_owned();
    // While the call is under way.
    let sent = script.last(REGISTER);
    let question = format!("?challenge={}", sent["challenge"].as_str().expect("text"));
    let answer = ask(&app, &secret, &question).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), json!({ "value": sent["challengeValue"] }));
    ask(&app, "wrong", &question)
        .await
        .assert_error(403, "invalid proxy secret");
    ask(&app, &secret, "?challenge=other")
        .await
        .assert_error(404, "unknown challenge");
    assert_eq!(ask(&app, &secret, "").await.status, 422);
    gate.open();
    pass(3_010).await;
    ask(&app, &secret, &question)
        .await
        .assert_error(404, "unknown challenge");
    let sent = script.last(HEARTBEAT);
    let question = format!("?challenge={}", sent["challenge"].as_str().expect("text"));
    assert_eq!(
        ask(&app, &secret, &question).await.json()["value"],
        sent["challengeValue"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_control_plane_has_no_challenge() {
    // W10.2
    let app = App::start(Scene::default().worker(quick())).await;
    let reply = ask(&app, app.worker.secret(), "?challenge=x").await;
    assert_eq!(reply.status, 404);
    assert_eq!(app.worker.client_id(), None);
}
