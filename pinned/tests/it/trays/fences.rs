//! Trays and placement epochs: D18.3, D18.9, D18.10, D16.4.

use pinned::PinnedWorker;
use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};

use super::lane::{self, Lane};
use super::script::Script;
use super::store::Shelf;
use super::{row, stored};
use crate::app::{App, Board, settle};

struct Placed {
    app: App,
    board: Board,
    shelf: Shelf,
    script: Script,
}

async fn placed() -> Placed {
    let (board, shelf, script) = (Board::default(), Shelf::new(), Script::default());
    let builder = PinnedWorker::builder()
        .host_with::<Lane>(lane::options())
        .placements(std::sync::Arc::new(board.clone()))
        .state(script.clone())
        .store(shelf.clone());
    let app = App::start(builder).await;
    Placed {
        app,
        board,
        shelf,
        script,
    }
}

impl Placed {
    async fn enqueue(&self, n: u64, epoch: u64) -> u16 {
        let call = self.app.post(&format!("/lanes/a/jobs/{n}"));
        call.attested().epoch(epoch).send().await.status.as_u16()
    }

    fn is_gone(&self) -> bool {
        self.app
            .worker
            .hosted::<Lane>()
            .expect("mounted")
            .is_empty()
    }

    /// Another activation, of a newer epoch, writes.
    async fn supersede(&self, epoch: u64, doc: &str) {
        let claim = Claim::new(InstanceKey::new("/lanes", "a"), epoch);
        let doc = Doc::parse(doc).expect("an object");
        let key = TrayKey::new("rooms", "x");
        self.shelf
            .rows
            .set_tray(claim, key, false, doc)
            .await
            .expect("memory");
    }

    fn epoch(&self) -> u64 {
        self.shelf.rows.epoch(&InstanceKey::new("/lanes", "a"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_carries_the_newest_epoch() {
    // D18.2, D18.3
    let placed = placed().await;
    let _gate = placed.script.hold(1);
    assert_eq!(placed.enqueue(1, 4).await, 200);
    settle().await;
    assert_eq!(placed.epoch(), 4);
    let held = placed.shelf.hold("set work/~");
    assert_eq!(placed.enqueue(2, 4).await, 200);
    held.reached().await;
    assert_eq!(placed.enqueue(3, 6).await, 200);
    held.open();
    settle().await;
    assert_eq!(placed.epoch(), 6);
    // The same instance, and the item is still in its first delivery.
    assert_eq!(placed.script.seen(), [(1, 1)]);
    let doc = r#"{"queue":[{"n":1},{"n":2},{"n":3}],"~attempts":1}"#;
    assert_eq!(row(&placed.shelf, "work", "~"), stored(true, doc));
}

#[tokio::test(start_paused = true)]
async fn a_fenced_read_aborts_the_instance_and_hands_the_placement_back() {
    // T9.2, D18.9
    let placed = placed().await;
    assert_eq!(placed.enqueue(1, 4).await, 200);
    settle().await;
    placed.supersede(5, "{}").await;
    let room = placed
        .app
        .get("/lanes/a/rooms/x")
        .attested()
        .epoch(4)
        .send()
        .await;
    assert!(room.status.is_server_error());
    settle().await;
    assert!(placed.is_gone());
    assert_eq!(placed.board.released(), [("/lanes/a".to_owned(), Some(4))]);
    assert_eq!(placed.enqueue(2, 4).await, 503);
    let room = placed
        .app
        .get("/lanes/a/rooms/x")
        .attested()
        .epoch(6)
        .send()
        .await;
    assert_eq!(room.status.as_u16(), 200, "{}", room.body);
}

#[tokio::test(start_paused = true)]
async fn a_superseded_writer_ends_and_its_successors_row_stays() {
    // D16.4, D18.10: nothing is handed back when the log has failed.
    let placed = placed().await;
    let gate = placed.script.hold(1);
    assert_eq!(placed.enqueue(1, 4).await, 200);
    settle().await;
    placed.supersede(5, r#"{"done":9}"#).await;
    gate.open();
    settle().await;
    assert!(placed.is_gone());
    assert_eq!(placed.board.released(), []);
    assert_eq!(
        row(&placed.shelf, "rooms", "x"),
        stored(false, r#"{"done":9}"#)
    );
    let doc = r#"{"queue":[{"n":1}],"~attempts":1}"#;
    assert_eq!(row(&placed.shelf, "work", "~"), stored(true, doc));
}

#[tokio::test(start_paused = true)]
async fn the_placement_is_handed_back_only_after_a_clean_end() {
    // D18.10: trays closed, teardown done, log drained.
    for unclean in ["", "hook", "teardown"] {
        let placed = placed().await;
        assert_eq!(placed.enqueue(1, 4).await, 200);
        let lane = placed
            .app
            .worker
            .hosted::<Lane>()
            .unwrap()
            .instance("a")
            .await
            .unwrap();
        lane.trays(Lane::ROOMS)
            .unwrap()
            .get_or_create("x")
            .await
            .unwrap();
        settle().await;
        match unclean {
            "hook" => placed
                .script
                .on_hook("first close", |_, _| async { Err("told to fail".into()) }),
            "teardown" => placed.script.fail_teardown(),
            _ => {}
        }
        placed.app.worker.hosted::<Lane>().unwrap().abort("a");
        settle().await;
        assert!(placed.is_gone());
        assert_eq!(
            placed.board.released().is_empty(),
            !unclean.is_empty(),
            "{unclean}"
        );
    }
}
