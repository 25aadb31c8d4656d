//! Durable fields of hosted structs.

use std::sync::Arc;

use http::StatusCode;
use pinned::durability::{Claim, Doc, InstanceKey, MemoryStore, StateStore, TrayKey};
use pinned::{
    Context, Durable, Instance, Json, Persistent, SetupError, Stored, lifespan, pinned_api, route,
};
use serde_json::{Value, json};

use super::account::{World, world, world_of, world_over};
use super::store::{Switched, Writes};
use crate::app::{App, Board, frame, pass, settle};
use crate::observe::Logs;

/// A disk with this doc in the row of the fields of `/accounts/a`.
async fn disk(doc: &str) -> MemoryStore {
    let disk = MemoryStore::new();
    put(&disk, doc).await;
    disk
}

async fn put(disk: &MemoryStore, doc: &str) {
    let claim = Claim::new(InstanceKey::new("/accounts", "a"), 0);
    let doc = Doc::parse(doc).expect("an object");
    let set = disk.set_tray(claim, TrayKey::new("~", "~"), false, doc);
    set.await.expect("set");
}

async fn world_with(doc: &str) -> World {
    world_over(Switched::over_disk(disk(doc).await)).await
}

#[tokio::test(start_paused = true)]
async fn each_change_is_on_its_way_at_once_and_what_is_declared_has_no_entry() {
    // T3.2, T4.2 for the fields of an instance: one row, unmarked, apart from every tray's
    let world = world().await;
    assert_eq!(world.get("").await, "0");
    assert_eq!(world.row(), None);
    world.post("/add/0").await.assert_ok("0");
    world.post("/own/nobody").await;
    assert_eq!(world.row(), None);
    world.post("/own/me").await;
    assert_eq!(world.row(), Some((false, r#"{"owner":"me"}"#.to_owned())));
    world.post("/add/5").await;
    world.post("/book/2").await;
    let doc = r#"{"balance":7,"entries":[2],"owner":"me"}"#;
    assert_eq!(world.row(), Some((false, doc.to_owned())));
    world.store.writes();
    world.post("/own/me").await;
    world.post("/add/0").await;
    assert_eq!(world.store.writes(), [""; 0]);
    world.post("/reset").await;
    assert_eq!(world.row(), Some((false, "{}".to_owned())));
    assert_eq!(world.get("").await, "0");
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_is_there_before_anything_runs() {
    let world = world_with(r#"{"balance":41,"owner":"me"}"#).await;
    world.post("/add/1").await.assert_ok("42");
    // What is not durable starts anew.
    assert_eq!(world.get("/seen").await, "1");
    pass(20_000).await;
    assert_eq!(world.host().len(), 0);
    assert_eq!(
        (world.get("").await, world.get("/seen").await),
        ("42".to_owned(), "1".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn reading_writes_nothing_whatever_the_stored_text_looks_like() {
    let doc = "{ \"balance\" : 1 , \"entries\" : [ 1 , 2 ] }";
    let world = world_with(doc).await;
    assert_eq!(world.get("").await, "1");
    world.post("/add/0").await.assert_ok("1");
    pass(20_000).await;
    assert_eq!(world.row(), Some((false, doc.to_owned())));
    // The tray beside them is new.
    assert_eq!(world.store.writes(), ["notes"]);
}

#[tokio::test(start_paused = true)]
async fn several_fields_change_in_one_write_or_not_at_all() {
    for store in [Switched::new(), Switched::singles(MemoryStore::new())] {
        let world = world_over(store).await;
        world.post("/add/1").await.assert_ok("1");
        world.store.writes();
        assert_eq!(world.post("/book/5").await.status, StatusCode::OK);
        assert_eq!(world.store.writes(), ["~"]);
        let doc = r#"{"balance":6,"entries":[5]}"#;
        assert_eq!(world.row(), Some((false, doc.to_owned())));
        // A panic between the two.
        let reply = world.post("/book/13").await;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        pass(1_000).await;
        assert_eq!(world.row(), Some((false, doc.to_owned())));
        assert_eq!(
            (world.get("").await, world.get("/seen").await),
            ("6".to_owned(), "1".to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_fits_no_more_fails_the_activation_and_loses_nothing() {
    let logs = Logs::capture();
    let doc = r#"{"balance":"much","owner":"me"}"#;
    let world = world_with(doc).await;
    for _ in 0..2 {
        let reply = world.post("/add/1").await;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR, "{reply:?}");
        settle().await;
    }
    let events = logs.events("ERROR", "activation failed");
    assert_eq!(events.len(), 2);
    assert!(
        events[0].field("error").contains("\"balance\""),
        "{events:?}"
    );
    assert_eq!(world.row(), Some((false, doc.to_owned())));
    assert_eq!(world.host().len(), 0);
    // The row is mended, and nothing else must be done.
    put(&world.store.disk, r#"{"balance":3,"owner":"me"}"#).await;
    world.post("/add/1").await.assert_ok("4");
}

#[tokio::test(start_paused = true)]
async fn a_field_of_an_earlier_version_is_kept() {
    let world = world_with(r#"{"balance":1,"gone":{"a":[1,2]}}"#).await;
    world.post("/add/1").await.assert_ok("2");
    let doc = r#"{"balance":2,"gone":{"a":[1,2]}}"#;
    assert_eq!(world.row(), Some((false, doc.to_owned())));
    world.post("/reset").await;
    assert_eq!(
        world.row(),
        Some((false, r#"{"gone":{"a":[1,2]}}"#.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_fails_the_activation_alone() {
    let world = world().await;
    world.post("/add/1").await.assert_ok("1");
    world.host().abort("a");
    settle().await;
    // A newer owner has it: whoever reads below its epoch is refused.
    let newer = Claim::new(InstanceKey::new("/accounts", "a"), 3);
    let key = TrayKey::new("~", "~");
    world.store.disk.get_tray(newer, key).await.expect("read");
    let reply = world.post("/add/1").await;
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR, "{reply:?}");
    assert_eq!(world.host().len(), 0);
    assert_eq!(world.row(), Some((false, r#"{"balance":1}"#.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn fields_and_a_tray_of_one_instance_change_together() {
    let world = world().await;
    world.post("/add/1").await;
    assert_eq!(world.post("/note/5").await.status, StatusCode::OK);
    settle().await;
    assert_eq!(world.row(), Some((false, r#"{"balance":6}"#.to_owned())));
    assert_eq!(
        world.row_of("notes"),
        Some((false, r#"{"sum":5}"#.to_owned()))
    );
    // And come back together.
    let disk = world.store.disk.clone();
    drop(world);
    let world = world_over(Switched::over_disk(disk)).await;
    world.post("/note/4").await;
    settle().await;
    assert_eq!(world.get("").await, "10");
    assert_eq!(
        world.row_of("notes"),
        Some((false, r#"{"sum":9}"#.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_writer_at_a_lost_epoch_ends_and_the_newer_one_has_what_was_durable() {
    // D16.4, D18.3
    let placed = |store: Switched| {
        world_of(store, |builder| {
            builder.placements(Arc::new(Board::default()))
        })
    };
    let old = placed(Switched::new()).await;
    let new = placed(Switched::over_disk(old.store.disk.clone())).await;
    let post = |app: &App, epoch: u64| app.post("/accounts/a/add/1").attested().epoch(epoch);
    post(&old.app, 1).send().await.assert_ok("1");
    let gate = old.store.park();
    let parked = post(&old.app, 1).begin().await;
    post(&new.app, 2).send().await.assert_ok("2");
    gate.open();
    let parked = parked.await.expect("an answer");
    assert_eq!(parked.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!parked.headers.contains_key("pinned-refusal"));
    settle().await;
    assert_eq!((old.host().len(), new.host().len()), (0, 1));
    assert_eq!(old.row(), Some((false, r#"{"balance":2}"#.to_owned())));
    post(&new.app, 2).send().await.assert_ok("3");
    // Placed again where it was, and above the other: its memory is that of the store.
    old.store.set(Writes::Apply);
    post(&old.app, 3).send().await.assert_ok("4");
    // D18.3: an instance follows its epoch without being restarted.
    post(&old.app, 4).send().await.assert_ok("5");
    assert_eq!(old.host().activations(), 2);
    assert_eq!(old.store.disk.epoch(&InstanceKey::new("/accounts", "a")), 4);
}

#[tokio::test(start_paused = true)]
async fn a_field_is_watched_by_a_socket() {
    // O7.2, T5.6
    let world = world().await;
    world.post("/add/1").await;
    let mut socket = world
        .app
        .get("/accounts/a/watch")
        .connect()
        .await
        .expect("a socket");
    let mut next =
        async || -> Value { serde_json::from_str(&frame(&mut socket).await).expect("JSON") };
    assert_eq!(next().await, json!({ "value": 1 }));
    let gate = world.store.park();
    world.post("/loose/2").await;
    let op = next().await;
    assert_eq!(
        (&op["op"]["path"], &op["op"]["value"]),
        (&json!([]), &json!(3))
    );
    gate.open();
    // What changes nothing is no op.
    world.post("/add/0").await;
    world.post("/reset").await;
    assert_eq!(next().await["op"]["value"], json!(0));
}

#[tokio::test(start_paused = true)]
async fn a_field_is_watched_by_events() {
    // T5.6: at the depth at which it changed
    let world = world_with(r#"{"entries":[7]}"#).await;
    let events = world.app.get("/accounts/a/events").begin().await;
    for n in [8, 9] {
        assert_eq!(
            world.post(&format!("/book/{n}")).await.status,
            StatusCode::OK
        );
    }
    let reply = events.await.expect("an answer");
    let data: Vec<Value> = reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    assert_eq!(data[0], json!([7]));
    assert_eq!(
        (&data[1]["path"], &data[1]["value"]),
        (&json!([1]), &json!(8))
    );
    assert_eq!(
        (&data[2]["path"], &data[2]["value"]),
        (&json!([2]), &json!(9))
    );
}

/// Has a setup, which is given what is stored.
#[derive(Durable)]
#[durable(setup)]
struct Guest {
    name: Persistent<String>,
    visits: Persistent<u64>,
    greeting: String,
}

#[pinned_api("/guests")]
impl Guest {
    #[lifespan::setup]
    async fn setup(ctx: Context, mut stored: Stored<Self>) -> Result<Self, SetupError> {
        stored.visits.update(|visits| *visits += 1);
        if ctx.id() == "banned" {
            return Err(SetupError::http(StatusCode::FORBIDDEN, "banned"));
        }
        if stored.name.is_empty() {
            stored.name.set(ctx.id().to_owned());
        }
        Ok(Self {
            greeting: format!("hello {}", *stored.name),
            name: stored.name,
            visits: stored.visits,
        })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.name.update(|name| name.push('!'));
    }

    #[route::get("/")]
    async fn greet(this: Instance<Self>) -> Result<Json<(String, u64)>, pinned::Refusal> {
        let guest = this.read().await?;
        Ok(Json((guest.greeting.clone(), *guest.visits)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_setup_is_given_the_fields_and_may_change_them_as_may_a_teardown() {
    let disk = MemoryStore::new();
    let options = super::account::quick().namespace("/guests");
    let builder = pinned::PinnedWorker::builder()
        .host_with::<Guest>(options)
        .store(disk.clone());
    let app = App::start(builder).await;
    let row = || {
        let rows = disk.rows(&InstanceKey::new("/guests", "ann"));
        rows.into_iter()
            .map(|row| row.state.doc.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(app.get("/guests/ann").text().await, r#"["hello ann",1]"#);
    settle().await;
    assert_eq!(row(), [r#"{"name":"ann","visits":1}"#]);
    pass(20_000).await;
    // T17.1: the log is waited for after the teardown.
    assert_eq!(row(), [r#"{"name":"ann!","visits":1}"#]);
    assert_eq!(app.get("/guests/ann").text().await, r#"["hello ann!",2]"#);
    // A setup that fails has nothing more to write, and none is kept.
    assert_eq!(
        app.get("/guests/banned").send().await.status,
        StatusCode::FORBIDDEN
    );
    settle().await;
    let host = app.worker.hosted::<Guest>().expect("mounted");
    assert_eq!(host.len(), 1);
}
