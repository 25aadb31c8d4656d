//! What a handler does with its dispatch: takes, state, and admissions under a key (T6, T12, T13).

mod absorbing;
mod admitting;
mod context;
mod hub;
mod taking;
mod targets;
mod torn;

use pinned::durability::{InstanceKey, StateStore};
use pinned::{Dispatch, Instance, TrayHandle};

use crate::app::{App, pass};
use crate::durable::store::Switched;
pub(super) use hub::{Hub, Job, Relay, Script, Sink};

/// One instance, `a`, over a store that can be torn.
struct World {
    app: App,
    store: Switched,
    script: Script,
}

async fn world() -> World {
    world_over(Switched::new(), Script::default()).await
}

async fn world_over(store: Switched, script: Script) -> World {
    let builder = pinned::PinnedWorker::builder()
        .host::<Hub>("/hubs")
        .state(script.clone())
        .store(store.clone());
    World {
        app: App::start(builder).await,
        store,
        script,
    }
}

impl World {
    /// The row of a tray: its mark and its doc.
    fn row(&self, tray: &str) -> (bool, String) {
        self.row_of(tray, "~").expect("a row")
    }

    fn row_of(&self, tray: &str, id: &str) -> Option<(bool, String)> {
        let rows = self.store.disk.rows(&InstanceKey::new("/hubs", "a"));
        let row = rows
            .into_iter()
            .find(|row| (&*row.key.tray_ns, &*row.key.tray_id) == (tray, id))?;
        Some((row.state.marked, row.state.doc.as_str().to_owned()))
    }

    async fn hub(&self) -> Instance<Hub> {
        let host = self.app.worker.hosted::<Hub>().expect("mounted");
        host.instance("a").await.expect("live")
    }

    async fn relay(&self) -> TrayHandle<Relay> {
        self.hub().await.tray(Hub::RELAY).await.expect("open")
    }

    async fn sink(&self) -> TrayHandle<Sink> {
        self.hub().await.tray(Hub::SINK).await.expect("open")
    }

    /// Admits `n` into the relay, durably.
    async fn send(&self, n: u64) {
        let relay = self.relay().await;
        let admitted = relay.admit(|relay| relay.queue.push(Job { n }));
        admitted.expect("open").await.expect("durable");
    }

    /// What the sink has acknowledged.
    async fn sunk(&self) -> Vec<u64> {
        let sink = self.sink().await;
        sink.read(|sink| sink.log.clone()).expect("open")
    }

    /// Ends the process where it stands, and starts another on the rows that survive.
    async fn crash(self) -> Self {
        let script = self.script.clone();
        self.crash_into(script).await
    }

    async fn crash_into(self, script: Script) -> Self {
        let Self { app, store, .. } = self;
        let batches = store.batches();
        let disk = store.disk.clone();
        drop((app, store));
        pass(10).await;
        let store = match batches {
            true => Switched::over_disk(disk),
            false => Switched::singles(disk),
        };
        world_over(store, script).await
    }
}

/// What a handler of the relay is given.
type Relayed = Dispatch<Relay>;
