//! Calls between instances of a fleet (W14).

use super::{Script, touch};
use crate::scene::Scene;

#[tokio::test(start_paused = true)]
async fn what_lives_here_is_called_here_and_the_rest_needs_the_control_plane() {
    // W14.2, W14.7
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    for id in ["a", "b"] {
        touch(&app, id, "session-1", 1).await;
    }
    let cluster = scene.context().cluster();
    let local = cluster.get("/actors/a").send().await.expect("an answer");
    assert_eq!(local.status(), 200);
}
