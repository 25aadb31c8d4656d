//! Trays (T), through a hosted struct.

mod keyed;
mod lane;

use std::time::Duration;

use pinned::durability::{InstanceKey, MemoryStore};

use crate::app::App;
use lane::{Job, Lane, Script};

struct World {
    app: App,
    store: MemoryStore,
    script: Script,
}

async fn world() -> World {
    world_over(MemoryStore::new(), Script::default()).await
}

async fn world_over(store: MemoryStore, script: Script) -> World {
    let builder = pinned::PinnedWorker::builder()
        .host::<Lane>("/lanes")
        .state(script.clone())
        .store(store.clone());
    World {
        app: App::start(builder).await,
        store,
        script,
    }
}

impl World {
    fn row(&self, tray: &str) -> (bool, String) {
        let rows = self.store.rows(&InstanceKey::new("/lanes", "a"));
        let row = rows
            .into_iter()
            .find(|row| &*row.key.tray_ns == tray)
            .expect("a row");
        (row.state.marked, row.state.doc.as_str().to_owned())
    }

    async fn lane(&self) -> pinned::Instance<Lane> {
        let host = self.app.worker.hosted::<Lane>().expect("mounted");
        host.instance("a").await.expect("live")
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_admitted_is_handled_in_order_and_leaves_nothing_behind() {
    let world = world().await;
    let lane = world.lane().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.row("work"), (false, "{}".to_owned()));
    let work = lane.tray(lane::WORK).await.unwrap();
    for n in 1..=3 {
        work.admit(|work| work.queue.push(Job { n }))
            .unwrap()
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(world.row("work"), (false, r#"{"done":3}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_aborts_and_the_item_comes_again() {
    let world = world().await;
    world.script.fail(2);
    let lane = world.lane().await;
    let work = lane.tray(lane::WORK).await.unwrap();
    for n in 1..=3 {
        let _ = work.admit(|work| work.queue.push(Job { n })).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    let (marked, doc) = world.row("work");
    assert!(marked);
    assert_eq!(doc, r#"{"done":1,"queue":[{"n":2},{"n":3}],"~attempts":1}"#);
    drop((lane, work));
    world.lane().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1), (2, 2), (3, 1)]);
    assert_eq!(world.row("work"), (false, r#"{"done":3}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn without_a_control_plane_work_resumes_without_any_request() {
    // D8.7, local mode
    let store = MemoryStore::new();
    let world = world_over(store.clone(), Script::default()).await;
    world.script.fail(1);
    let lane = world.lane().await;
    let work = lane.tray(lane::WORK).await.unwrap();
    let _ = work.admit(|work| work.queue.push(Job { n: 1 })).unwrap();
    drop((work, lane));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.seen(), [(1, 1)]);
    let script = Script::default();
    drop(world);
    let world = world_over(store, script).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.seen(), [(1, 2)]);
    assert_eq!(world.row("work"), (false, r#"{"done":1}"#.to_owned()));
}
