//! Trays (T), through a hosted struct: every item but those of keyed admissions, and of what `Dispatch` offers for them,
//! which `keyed` shows.
//!
//! What is not shown, because it cannot come up here:
//!
//! - T1.4, T1.5, T1.6 and T9.8's cycles: bad settings, a tray without items, handlers and inbox methods of the wrong shape do
//!   not compile (`tests/ui`). A field cannot contain another field.
//! - T9.9's lifecycles without or with several suspension points: setup and teardown are two functions.
//! - T3.3's values that are changed after they were written: a value is owned by its field. What is read is `&T`, and what is
//!   written moved.
//! - T5.2's insertions in the middle, and edge case 25: there is no such operation; `edit` changes an entry in place.
//! - T7.2's `ack` of an empty outbox gives `None`.
//! - T14.5's close from within `items`: a source runs in a segment, which cannot wait. Its handler closes (`close`).
//! - T15.8's unknown commands: a row that has one does not open (`opening`).
//! - T17.5's settlement into a namespace that is closed: every pump has ended before the first one closes.
//! - T18.3's handler that ends cancelled without being cancelled: dropping is the only cancellation, and whoever drops a handler
//!   knows why.
//! - T3.4's row write per change without batches: a segment is one write per row with every store (docs/decisions.md).

mod close;
mod declaration;
mod delete;
mod eviction;
mod fences;
mod fields;
mod hooks;
mod idle;
mod instance_close;
mod keyed;
mod lane;
mod late;
mod map;
mod opening;
mod parking;
mod pump;
mod remains;
mod rows;
mod script;
mod slots;
mod store;
mod threads;
mod timeouts;
mod unreadable;

use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
use pinned::{Instance, PinnedHost, PinnedWorker, TrayHandle, TrayMap};

use crate::app::{App, settle};
use lane::{Drain, Kept, Lane, Work};
use script::Script;
use store::Shelf;

struct World {
    app: App,
    shelf: Shelf,
    script: Script,
}

async fn world() -> World {
    over(Shelf::new()).await
}

async fn over(shelf: Shelf) -> World {
    let script = Script::default();
    let builder = PinnedWorker::builder()
        .host_with::<Lane>(lane::options())
        .state(script.clone())
        .store(shelf.clone());
    World {
        app: App::start(builder).await,
        shelf,
        script,
    }
}

/// Puts a row of instance `a` into a store that nobody serves yet.
async fn put(shelf: &Shelf, tray: &str, id: &str, marked: bool, doc: &str) {
    let claim = Claim::new(InstanceKey::new("/lanes", "a"), 0);
    let doc = Doc::parse(doc).expect("an object");
    let put = shelf
        .rows
        .set_tray(claim, TrayKey::new(tray, id), marked, doc);
    put.await.expect("memory");
}

/// A row as it is stored: whether it is marked, and its doc.
fn row(shelf: &Shelf, tray: &str, id: &str) -> Option<(bool, String)> {
    let rows = shelf.rows.rows(&InstanceKey::new("/lanes", "a"));
    let key = TrayKey::new(tray, id);
    let row = rows.into_iter().find(|row| row.key == key)?;
    Some((row.state.marked, row.state.doc.as_str().to_owned()))
}

fn stored(marked: bool, doc: &str) -> Option<(bool, String)> {
    Some((marked, doc.to_owned()))
}

impl World {
    fn host(&self) -> PinnedHost<Lane> {
        self.app.worker.hosted::<Lane>().expect("mounted")
    }

    /// The instance `a`, activated if it must be.
    async fn lane(&self) -> Instance<Lane> {
        self.host().instance("a").await.expect("live")
    }

    async fn work(&self) -> TrayHandle<Work> {
        self.lane().await.tray(Lane::WORK).await.expect("open")
    }

    async fn drain(&self) -> TrayHandle<Drain> {
        self.lane().await.tray(Lane::DRAIN).await.expect("open")
    }

    async fn rooms(&self) -> TrayMap<Work> {
        self.lane().await.trays(Lane::ROOMS).expect("a store")
    }

    async fn kept(&self) -> TrayMap<Kept> {
        self.lane().await.trays(Lane::KEPT).expect("a store")
    }

    /// The row of the tray `work`.
    fn work_row(&self) -> (bool, String) {
        self.row("work", "~").expect("a row")
    }

    fn row(&self, tray: &str, id: &str) -> Option<(bool, String)> {
        row(&self.shelf, tray, id)
    }

    /// Every row of the instance, by its tray's name and its id.
    fn keys(&self) -> Vec<String> {
        let rows = self.shelf.rows.rows(&InstanceKey::new("/lanes", "a"));
        rows.iter().map(|row| row.key.to_string()).collect()
    }

    /// Ends the instance as a crash does, as far as its rows can tell: nothing is acknowledged.
    async fn abort(&self) {
        self.host().abort("a");
        settle().await;
        assert!(self.is_gone());
    }

    fn is_gone(&self) -> bool {
        self.host().is_empty()
    }
}
