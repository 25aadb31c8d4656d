//! Stand-ins for what is behind a worker.

use http::StatusCode;
use pinned::durability::InstanceKey;
use pinned::{PinnedWorker, WorkerBuilder};
use pinned_testing::{BarrierStore, Gate, Release, ScriptedPlacements, TestApp};

use crate::ledger::{Disk, Ledger};
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

fn ledgers(store: &BarrierStore) -> WorkerBuilder {
    let builder = PinnedWorker::builder().host::<Ledger>("/ledgers");
    builder.state(Disk::new(store.clone())).store(store.clone())
}

#[tokio::test]
async fn writes_are_parked_before_they_land() -> pinned::Result<()> {
    // S11.1, H17.5
    let store = BarrierStore::new();
    let app = TestApp::start(ledgers(&store)).await?;
    let client = app.client();
    store.hold();
    let (answer, ()) = tokio::join!(client.post("/ledgers/blue/enter/a").send(), async {
        store.parked().await;
        assert_eq!(store.rows("/ledgers", "blue"), []);
        store.release();
    });
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(store.rows("/ledgers", "blue").len(), 1);
    app.shutdown().await
}

#[tokio::test]
async fn writes_fail_at_the_tests_word_and_nothing_changes() -> pinned::Result<()> {
    // S11.1
    let store = BarrierStore::new();
    let app = TestApp::start(ledgers(&store)).await?;
    let client = app.client();
    client.post("/ledgers/blue/enter/a").send().await;
    let landed = store.rows("/ledgers", "blue");
    assert_eq!(landed.len(), 1);
    store.hold();
    let enter = client
        .post("/ledgers/blue/enter/b")
        .header("pinboard-epoch", "4");
    let (_, ()) = tokio::join!(enter.send(), async {
        store.parked().await;
        store.fail();
        store.release();
    });
    assert_eq!(store.rows("/ledgers", "blue"), landed);
    let instance = InstanceKey::new("/ledgers", "blue");
    assert_eq!(store.memory().epoch(&instance), 0);
    app.shutdown().await
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
