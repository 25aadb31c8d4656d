//! Stand-ins for what is behind a worker.

use http::StatusCode;
use pinned::{PinnedWorker, WorkerBuilder};
use pinned_testing::{BarrierDurability, Gate, Release, ScriptedPlacements, TestApp};

use crate::room::Room;

fn rooms() -> WorkerBuilder {
    PinnedWorker::builder().host::<Room>("/rooms")
}

#[tokio::test]
async fn releases_are_recorded_held_and_failed() -> pinned::Result<()> {
    let placements = ScriptedPlacements::new();
    let app = TestApp::start(rooms().placements(placements.clone())).await?;
    let host = app.host::<Room>();
    let (blue, red) = (
        Release::new("/rooms", "blue", Some(7)),
        Release::new("/rooms", "red", None),
    );

    let post = app
        .client()
        .post("/rooms/blue/increment")
        .header("pinboard-epoch", "7");
    post.send().await;
    placements.hold();
    host.wind_down("blue", Some(std::time::Duration::ZERO));
    assert_eq!(placements.next_release().await, blue);
    placements.parked().await;
    assert_eq!(placements.released(), []);
    placements.release();

    app.client().post("/rooms/red/increment").send().await;
    placements.fail_next();
    host.wind_down("red", Some(std::time::Duration::ZERO));
    assert_eq!(placements.next_release().await, red);
    app.shutdown().await?;
    assert_eq!(placements.requested(), [blue.clone(), red]);
    assert_eq!(placements.released(), [blue]);
    Ok(())
}

#[tokio::test]
async fn receipts_are_parked_and_failed() -> pinned::Result<()> {
    // H17.5
    let store = BarrierDurability::new();
    let app = TestApp::start(rooms().durability(store.clone())).await?;
    let client = app.client();
    store.hold();
    let (answer, ()) = tokio::join!(client.get("/rooms/blue/frontier").send(), async {
        store.parked().await;
        store.release();
    });
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = client
        .get("/rooms/blue/frontier")
        .header("pinboard-epoch", "4")
        .send()
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    let log = store.log("/rooms", "blue").expect("opened");
    assert_eq!(log.epochs(), [0, 4]);
    store.fail();
    let answer = client.get("/rooms/blue/frontier").send().await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(
        app.shutdown().await.is_err(),
        "the close cannot confirm its writes"
    );
    assert!(log.is_disposed());
    Ok(())
}

#[tokio::test]
async fn a_gate_tells_of_each_arrival_and_lets_one_pass() -> pinned::Result<()> {
    let gate = Gate::new();
    let app = TestApp::start(rooms().state(gate.clone())).await?;
    let client = app.client();
    let (first, second, ()) = tokio::join!(
        client.post("/rooms/blue/gated").send(),
        client.post("/rooms/blue/gated").send(),
        async {
            gate.reached().await;
            assert_eq!(gate.arrivals(), 0, "the second waits for its turn");
            gate.open_once();
            gate.reached().await;
            gate.open();
        }
    );
    assert_eq!(first.json::<u64>().await + second.json::<u64>().await, 3);
    app.shutdown().await
}
