//! Opening trays: T8, T9, T2.7.

use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
use pinned::{
    BoxError, Dispatch, Instance, Persistent, PersistentQueue, PinnedApi, PinnedWorker, Tray,
    TrayError, pinned_api,
};

use super::lane::Lane;
use super::lane::WorkInbox as _;
use super::script::Script;
use super::store::Shelf;
use super::{over, put, row, stored, world};
use crate::app::{App, pass, settle, spawn};

#[tokio::test(start_paused = true)]
async fn an_activation_reads_the_marked_rows_and_one_listing_per_always_open_tray() {
    // T8.2, T8.5, T9.3, edge cases 8 and 9
    let shelf = Shelf::new();
    put(&shelf, "rooms", "resting", false, r#"{"queue":[{"n":1}]}"#).await;
    put(&shelf, "rooms", "marked", true, r#"{"queue":[{"n":2}]}"#).await;
    put(&shelf, "kept", "resting", false, r#"{"queue":[{"n":3}]}"#).await;
    let world = over(shelf.clone()).await;
    let gate = world.script.hold(2);
    world.lane().await;
    settle().await;
    let log = shelf.log();
    assert_eq!(
        log[..4],
        ["list marked", "list work", "list drain", "list kept"]
    );
    assert!(log[4..].iter().all(|op| op.starts_with("set ")), "{log:?}");
    // Created in the order of their declaration.
    let made: Vec<&String> = log
        .iter()
        .filter(|op| op.ends_with("unmarked {}"))
        .collect();
    assert_eq!(
        made[..2],
        ["set work/~ unmarked {}", "set drain/~ unmarked {}"]
    );
    let seen: Vec<u64> = world.script.seen().into_iter().map(|(n, _)| n).collect();
    assert!(seen.contains(&2) && seen.contains(&3) && seen.len() == 2);
    let live = world.rooms().await.live();
    assert_eq!(
        live.iter()
            .map(|room| room.id().to_owned())
            .collect::<Vec<_>>(),
        ["marked"]
    );
    gate.open();
    settle().await;
    world.abort().await;
    // Rows that are there as they should be are not written again.
    shelf.forget();
    world.lane().await;
    settle().await;
    assert_eq!(
        shelf.log(),
        ["list marked", "list work", "list drain", "list kept"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_that_no_declaration_knows_fails_the_activation() {
    // T8.3
    for (tray, id) in [("other", "~"), ("work", "x"), ("rooms", ""), ("kept", "")] {
        let shelf = Shelf::new();
        put(&shelf, tray, id, true, "{}").await;
        let world = over(shelf).await;
        assert!(world.host().instance("a").await.is_err(), "{tray}/{id}");
        settle().await;
        assert!(world.is_gone());
    }
    // Nobody reads one that rests.
    let shelf = Shelf::new();
    put(&shelf, "other", "~", false, "{}").await;
    over(shelf).await.lane().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_reads_of_a_row_counts() {
    // T8.4
    let shelf = Shelf::new();
    put(&shelf, "work", "~", true, r#"{"queue":[{"n":1}]}"#).await;
    let world = over(shelf.clone()).await;
    let gate = shelf.hold("list work");
    let host = world.host();
    let activation = spawn(async move { host.instance("a").await.is_ok() });
    gate.reached().await;
    put(&shelf, "work", "~", true, r#"{"queue":[{"n":9}]}"#).await;
    gate.open();
    assert!(activation.await.unwrap());
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_activation_drops_the_instance_and_the_next_one_tries_anew() {
    // T8.6, T8.1
    let world = world().await;
    for what in ["list marked", "list kept"] {
        world.shelf.fail(what);
        assert!(world.host().instance("a").await.is_err());
        settle().await;
        assert!(world.is_gone());
    }
    world.shelf.mend();
    world.work().await.enqueue(1).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
}

#[tokio::test(start_paused = true)]
async fn malformed_rows_do_not_open() {
    // T2.7, T15.8
    let docs = [
        r#"{"~v":0}"#,
        r#"{"~v":"1"}"#,
        r#"{"~v":1.5}"#,
        r#"{"~attempts":0}"#,
        r#"{"~attempts":-1}"#,
        r#"{"~attempts":true}"#,
        r#"{"~parked":false}"#,
        r#"{"~parked":1}"#,
        r#"{"~inbox":{"command":"delete"}}"#,
        r#"{"~inbox":[{"command":"close"}]}"#,
        r#"{"~inbox":["delete"]}"#,
        r#"{"~dispatch":[{"key":1}]}"#,
        r#"{"~dispatch":[{"key":1,"target":["a","b"],"outcome":"lost","cleaned":true}]}"#,
        r#"{"~ignore":{}}"#,
        r#"{"~other":1}"#,
        r#"{"queue":1}"#,
        r#"{"queue":{"n":1}}"#,
        r#"{"queue":{"taken":1}}"#,
        r#"{"queue":[{"n":"one"}]}"#,
        r#"{"charge":{"item":"a","attempt":0}}"#,
        r#"{"done":"many"}"#,
    ];
    for doc in docs {
        let shelf = Shelf::new();
        put(&shelf, "work", "~", false, doc).await;
        let world = over(shelf).await;
        assert!(world.host().instance("a").await.is_err(), "{doc}");
        assert_eq!(world.row("work", "~"), stored(false, doc));
    }
    // T2.7: a queue that is an object may be empty in any way.
    for doc in [
        r#"{"queue":{}}"#,
        r#"{"queue":{"items":[]}}"#,
        r#"{"queue":{"taken":[],"items":[]}}"#,
    ] {
        let shelf = Shelf::new();
        put(&shelf, "work", "~", false, doc).await;
        over(shelf).await.lane().await;
    }
}

#[tokio::test(start_paused = true)]
async fn openings_of_one_id_are_one_opening() {
    // T9.1, edge case 27
    let world = world().await;
    let rooms = world.rooms().await;
    let gate = world.shelf.hold("get rooms/x");
    let callers: Vec<_> = (0..3)
        .map(|n| {
            let rooms = world.rooms();
            let rooms = futures_util::future::FutureExt::now_or_never(rooms).expect("resident");
            spawn(async move {
                let room = rooms.get_or_create("x").await.unwrap();
                room.update(|room| room.memory.push(n)).unwrap();
            })
        })
        .collect();
    settle().await;
    gate.open();
    for caller in callers {
        caller.await.unwrap();
    }
    let room = rooms.get("x").await.unwrap();
    assert_eq!(room.read(|room| room.memory.len()).unwrap(), 3);
    assert_eq!(world.script.hooks(), ["first open x", "second open x"]);
    settle().await;
    let reads = world.shelf.log();
    assert_eq!(reads.iter().filter(|op| *op == "get rooms/x").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fresh_tray_has_a_row_at_once_and_one_that_is_there_is_not_written() {
    // T9.2, T9.3, T9.4, edge case 2
    let world = world().await;
    let rooms = world.rooms().await;
    assert!(matches!(rooms.get("x").await, Err(TrayError::NotFound(_))));
    assert!(matches!(
        rooms.get_or_create("").await,
        Err(TrayError::EmptyId)
    ));
    let room = rooms.get_or_create("x").await.unwrap();
    assert!(!room.is_restored());
    settle().await;
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
    room.close().unwrap().await;
    world.shelf.forget();
    let room = rooms.get("x").await.unwrap();
    assert!(room.is_restored());
    settle().await;
    assert_eq!(world.shelf.log(), ["get rooms/x"]);
    // No opening is left behind: the close does not wait for one.
    world.abort().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_whose_caller_goes_away_is_given_up() {
    // T9.10
    let world = world().await;
    let gate = world.shelf.hold("get rooms/x");
    let rooms = world.rooms().await;
    let caller = spawn(async move { rooms.get_or_create("x").await.map(drop) });
    gate.reached().await;
    caller.abort();
    settle().await;
    gate.open();
    let room = world.rooms().await.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    world.abort().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_opens_once_the_trays_are_closed() {
    // T9.11, T17.3, edge case 27
    let world = world().await;
    let rooms = world.rooms().await;
    let gate = world.shelf.hold("get rooms/x");
    let opening = {
        let rooms = world.rooms().await;
        spawn(async move { rooms.get_or_create("x").await })
    };
    gate.reached().await;
    world.host().abort("a");
    settle().await;
    // The close waits for the opening, and refuses others.
    assert_eq!(world.host().len(), 1);
    assert!(matches!(
        rooms.get_or_create("y").await,
        Err(TrayError::Closing)
    ));
    gate.open();
    let opened = opening.await.unwrap();
    settle().await;
    assert!(world.is_gone());
    // It was opened, and is closed.
    if let Ok(room) = opened {
        assert!(room.enqueue(1).is_err());
    }
    assert!(matches!(rooms.get("x").await, Err(TrayError::Closing)));
    pass(1_000).await;
}

/// Declares a tray of the name `item` at its own version.
macro_rules! version {
    ($host:ident, $tray:ident, $version:literal) => {
        #[derive(Tray)]
        #[tray(version = $version)]
        struct $tray {
            queue: PersistentQueue<u64>,
            count: Persistent<u64>,
        }

        #[derive(Default)]
        struct $host;

        #[pinned_api("/lanes")]
        impl $host {
            #[tray]
            async fn item(
                this: Instance<Self>,
                n: u64,
                dispatch: Dispatch<$tray>,
            ) -> Result<(), BoxError> {
                if let Some(script) = this.context().state::<Script>() {
                    script.reach(n, dispatch.attempts()).await;
                }
                Ok(())
            }
        }
    };
}

version!(AtOne, ItemOne, 1);
version!(AtTwo, ItemTwo, 2);
version!(AtZero, ItemZero, 0);

async fn serve<T: PinnedApi>(shelf: &Shelf, script: &Script) -> App {
    let worker = PinnedWorker::builder()
        .host::<T>("/lanes")
        .state(script.clone());
    App::start(worker.store(shelf.clone())).await
}

#[tokio::test(start_paused = true)]
async fn another_version_opens_blank_and_writes_nothing_until_something_is_written() {
    // T9.5, T9.4, edge case 13
    let (shelf, script) = (Shelf::new(), Script::default());
    let at_one = r#"{"count":7,"queue":[1],"~inbox":[{"command":"delete"}],"~parked":true,"~v":1}"#;
    put(&shelf, "item", "~", false, at_one).await;
    let app = serve::<AtTwo>(&shelf, &script).await;
    let lane = app
        .worker
        .hosted::<AtTwo>()
        .unwrap()
        .instance("a")
        .await
        .unwrap();
    let item = lane.tray(AtTwo::ITEM).await.unwrap();
    settle().await;
    assert!(!item.is_restored() && !item.is_parked().unwrap());
    assert_eq!(row(&shelf, "item", "~"), stored(false, at_one));
    assert_eq!(script.seen(), []);
    item.update(|item| item.count.set(1)).unwrap();
    settle().await;
    assert_eq!(
        row(&shelf, "item", "~"),
        stored(false, r#"{"count":1,"~v":2}"#)
    );
    // And down again, to a version that is not written.
    drop((item, lane, app));
    settle().await;
    let app = serve::<AtZero>(&shelf, &script).await;
    let lane = app
        .worker
        .hosted::<AtZero>()
        .unwrap()
        .instance("a")
        .await
        .unwrap();
    let item = lane.tray(AtZero::ITEM).await.unwrap();
    item.update(|item| item.count.set(3)).unwrap();
    settle().await;
    assert_eq!(row(&shelf, "item", "~"), stored(false, r#"{"count":3}"#));
}

#[tokio::test(start_paused = true)]
async fn a_stale_claim_to_work_is_taken_back() {
    // T9.6, edge case 13
    let (shelf, script) = (Shelf::new(), Script::default());
    put(&shelf, "item", "~", true, r#"{"queue":[1]}"#).await;
    let app = serve::<AtOne>(&shelf, &script).await;
    let host = app.worker.hosted::<AtOne>().unwrap();
    host.instance("a").await.unwrap();
    settle().await;
    assert_eq!(row(&shelf, "item", "~"), stored(false, r#"{"~v":1}"#));
    assert_eq!(script.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn a_row_of_the_same_version_is_restored_and_a_fresh_one_has_its_version() {
    // T9.3, T9.4, T2.2
    let (shelf, script) = (Shelf::new(), Script::default());
    let app = serve::<AtOne>(&shelf, &script).await;
    let host = app.worker.hosted::<AtOne>().unwrap();
    let item = host
        .instance("a")
        .await
        .unwrap()
        .tray(AtOne::ITEM)
        .await
        .unwrap();
    settle().await;
    assert!(!item.is_restored());
    assert_eq!(row(&shelf, "item", "~"), stored(false, r#"{"~v":1}"#));
    item.update(|item| item.count.set(7)).unwrap();
    settle().await;
    host.abort("a");
    settle().await;
    let item = host
        .instance("a")
        .await
        .unwrap()
        .tray(AtOne::ITEM)
        .await
        .unwrap();
    assert!(item.is_restored());
    assert_eq!(item.read(|item| *item.count).unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_tray_that_its_setup_opens_starts_with_the_instance() {
    // T8.1, T9.7: see `hooks` for what runs in between.
    let shelf = Shelf::new();
    let claim = Claim::new(InstanceKey::new("/lanes", "a"), 0);
    let doc = Doc::parse(r#"{"queue":[{"n":1}]}"#).unwrap();
    shelf
        .rows
        .set_tray(claim, TrayKey::new("work", "~"), true, doc)
        .await
        .unwrap();
    let world = over(shelf).await;
    let lane = world.lane().await;
    let (one, other) = (
        lane.tray(Lane::WORK).await.unwrap(),
        lane.tray(Lane::WORK).await.unwrap(),
    );
    one.update(|work| work.memory.push(1)).unwrap();
    assert_eq!(other.read(|work| work.memory.clone()).unwrap(), [1]);
}
