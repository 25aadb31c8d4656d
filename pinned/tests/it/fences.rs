//! Placement-epoch fences (H12).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned::durability::{Durability, EffectLog};
use pinned::{
    BoxError, Context, HostOptions, Instance, PinnedHost, PinnedWorker, SetupError, WebSocket,
    lifespan, pinned_api, route,
};

use crate::app::{App, Board, Call, Gate, pass, settle, spawn};

const RELEASED: &str = "released placement epoch; retry";
const STALE: &str = "stale placement epoch; retry";
const CLOSING: &str = "instance closing; retry";

struct Seat {
    teardown: Gate,
}

#[pinned_api]
impl Seat {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        if ctx.id() == "broken" {
            return Err(SetupError::http(418, "broken"));
        }
        let teardown = Gate::clone(&ctx.state::<Gate>().unwrap());
        if !ctx.id().starts_with("slow") {
            teardown.open();
        }
        Ok(Self { teardown })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.teardown.pass().await;
    }

    #[route::get("/")]
    async fn sit(&self) -> &'static str {
        "seated"
    }

    #[route::get("/epoch")]
    async fn epoch(&self, ctx: Context) -> String {
        match ctx.placement_epoch() {
            Ok(epoch) => epoch.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[route::get("/neighbour")]
    async fn neighbour(&self, ctx: Context) -> String {
        let call = ctx.cluster().get("/seats/b").header("pinboard-epoch", "1");
        call.send().await.unwrap().status().to_string()
    }

    #[route::websocket("/chat")]
    async fn chat(_this: Instance<Self>, socket: WebSocket) {
        drop(socket);
    }
}

struct Hall {
    app: App,
    host: PinnedHost<Seat>,
    board: Board,
    teardown: Gate,
    store: Store,
}

async fn hall(options: HostOptions) -> Hall {
    let (board, teardown, store) = (Board::default(), Gate::closed(), Store::default());
    let app = App::start(
        PinnedWorker::builder()
            .host_with::<Seat>(options.namespace("/seats"))
            .placements(Arc::new(board.clone()))
            .durability(Arc::new(store.clone()))
            .state(teardown.clone()),
    )
    .await;
    let host = app.worker.hosted().expect("mounted");
    Hall {
        app,
        host,
        board,
        teardown,
        store,
    }
}

impl Hall {
    fn at(&self, epoch: u64, id: &str) -> Call {
        self.app
            .get(&format!("/seats/{id}"))
            .attested()
            .epoch(epoch)
    }

    async fn seated(&self, epoch: u64, id: &str) {
        self.at(epoch, id).send().await.assert_ok("seated");
    }

    async fn aborted(&self, id: &str) {
        self.host.abort(id);
        settle().await;
    }

    fn released(&self) -> Vec<Option<u64>> {
        self.board
            .released()
            .into_iter()
            .map(|(_, epoch)| epoch)
            .collect()
    }
}

/// A store that notes at which epochs its logs write.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Vec<(String, u64)>>>);

struct Log {
    store: Store,
    id: String,
}

impl Store {
    fn note(&self, id: &str, epoch: u64) {
        self.0.lock().push((id.to_owned(), epoch));
    }
}

impl Durability for Store {
    fn open(&self, _namespace: &str, id: &str, epoch: u64) -> Arc<dyn EffectLog> {
        self.note(id, epoch);
        Arc::new(Log {
            store: self.clone(),
            id: id.to_owned(),
        })
    }
}

impl EffectLog for Log {
    fn advance_epoch(&self, epoch: u64) {
        self.store.note(&self.id, epoch);
    }

    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn dispose(&self) {}
}

#[tokio::test(start_paused = true)]
async fn an_epoch_is_digits() {
    // H12.1
    let hall = hall(HostOptions::new()).await;
    let malformed: [&[u8]; 11] = [
        b"",
        b"-1",
        b"+1",
        b"1 2",
        b"1.0",
        b"1e3",
        b"0x1",
        b"one",
        b"\xe9",
        b"9223372036854775808",
        b"99999999999999999999999999",
    ];
    for value in malformed {
        let call = hall
            .app
            .get("/seats/a")
            .attested()
            .header("pinboard-epoch", value);
        call.send()
            .await
            .assert_error(400, "malformed placement epoch");
        let call = hall
            .app
            .get("/seats/a/chat")
            .attested()
            .header("pinboard-epoch", value);
        call.refused_socket()
            .await
            .assert_closed_before_acceptance();
    }
    assert_eq!(hall.host.len(), 0);
    // Any length, leading zeros, and the first header wins.
    let call = hall
        .app
        .get("/seats/a/epoch")
        .attested()
        .header("pinboard-epoch", "000000000000000000000000000007");
    call.header("pinboard-epoch", "x")
        .send()
        .await
        .assert_ok("7");
}

#[tokio::test(start_paused = true)]
async fn without_a_header_no_fence_is_looked_at() {
    // H12.2
    let hall = hall(HostOptions::new()).await;
    hall.seated(5, "a").await;
    hall.app
        .get("/seats/a")
        .attested()
        .send()
        .await
        .assert_ok("seated");
    hall.aborted("a").await;
    hall.app
        .get("/seats/a")
        .attested()
        .send()
        .await
        .assert_ok("seated");
    hall.at(5, "a").send().await.assert_refused(RELEASED);
    // Calls of this process carry none, whatever the caller says.
    hall.seated(9, "b").await;
    hall.app
        .get("/seats/a/neighbour")
        .attested()
        .send()
        .await
        .assert_ok("200 OK");
}

#[tokio::test(start_paused = true)]
async fn the_highest_epoch_is_served() {
    // H12.3, H3.3
    let hall = hall(HostOptions::new()).await;
    hall.seated(4, "a").await;
    hall.at(3, "a").send().await.assert_refused(STALE);
    hall.seated(4, "a").await;
    hall.seated(6, "a").await;
    hall.at(5, "a").send().await.assert_refused(STALE);
    let socket = hall.app.get("/seats/a/chat").attested().epoch(5);
    socket.refused_socket().await.assert_refused(STALE);
    hall.aborted("a").await;
    hall.at(5, "a").send().await.assert_refused(STALE);
    hall.at(6, "a").send().await.assert_refused(RELEASED);
    hall.seated(7, "a").await;
    assert_eq!(hall.released(), [Some(6)]);
}

#[tokio::test(start_paused = true)]
async fn the_fence_moves_although_a_later_step_refuses() {
    // H3.3
    let hall = hall(HostOptions::new().max_instances(1)).await;
    hall.seated(1, "resident").await;
    hall.at(8, "a")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
    hall.at(7, "a").send().await.assert_refused(STALE);
    hall.at(8, "a")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
}

#[tokio::test(start_paused = true)]
async fn a_higher_epoch_is_adopted_in_place_and_never_moves_down() {
    // H3.11, H12.8, E32
    let hall = hall(HostOptions::new()).await;
    hall.seated(2, "a").await;
    for (epoch, shown) in [(2, "2"), (5, "5"), (5, "5")] {
        let call = hall.app.get("/seats/a/epoch").attested().epoch(epoch);
        call.send().await.assert_ok(shown);
    }
    hall.app
        .get("/seats/a/epoch")
        .attested()
        .send()
        .await
        .assert_ok("5");
    hall.at(4, "a").send().await.assert_refused(STALE);
    assert_eq!(
        *hall.store.0.lock(),
        [("a".to_owned(), 2), ("a".to_owned(), 5)]
    );
    assert_eq!(hall.host.activations(), 1);
    hall.aborted("a").await;
    assert_eq!(hall.released(), [Some(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_closing_instance_hands_back_its_own_epoch_alone() {
    // H3.11, H12.4: the epoch that a refused request brought belongs to the next instance.
    let hall = hall(HostOptions::new()).await;
    hall.seated(1, "slow").await;
    hall.host.abort("slow");
    hall.teardown.reached(1).await;
    hall.at(2, "slow").send().await.assert_refused(CLOSING);
    hall.teardown.open();
    settle().await;
    assert_eq!(hall.released(), [Some(1)]);
    hall.at(1, "slow").send().await.assert_refused(STALE);
    hall.seated(2, "slow").await;
    assert_eq!(
        *hall.store.0.lock(),
        [("slow".to_owned(), 1), ("slow".to_owned(), 2)]
    );
}

fn kept() -> HostOptions {
    HostOptions::new()
        .idle_timeout(Duration::from_secs(10))
        .sweep_interval(Duration::from_secs(1))
        .release_placement_on_idle(false)
}

#[tokio::test(start_paused = true)]
async fn a_kept_close_leaves_its_epoch_open_and_a_releasing_one_does_not() {
    // H12.4, E12
    let hall = hall(kept()).await;
    hall.seated(3, "a").await;
    pass(12_000).await;
    assert_eq!((hall.host.len(), hall.host.evictions()), (0, 1));
    hall.seated(3, "a").await;
    hall.aborted("a").await;
    hall.at(3, "a").send().await.assert_refused(RELEASED);
    hall.seated(4, "a").await;
    assert_eq!(hall.released(), [Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_close_is_made_a_releasing_one_by_whatever_ends_the_instance() {
    // E11: exactly one release, and whoever waited is refused.
    for end in ["wind-down", "drain", "server drain", "shutdown", "abort"] {
        let hall = hall(kept()).await;
        hall.seated(3, "slow").await;
        hall.teardown.reached(1).await;
        let waiting = hall.at(3, "slow").begin().await;
        let mut ending = None;
        match end {
            "wind-down" => hall.host.wind_down("slow", Some(Duration::from_secs(60))),
            "drain" => {
                let worker = hall.app.worker.clone();
                ending = Some(spawn(async move { worker.drain(None).await }));
            }
            "server drain" => hall.app.worker.server_drain(Some(None)),
            "shutdown" => {
                let app = hall.app.clone();
                ending = Some(spawn(async move { app.shutdown().await }));
            }
            _ => hall.host.abort("slow"),
        }
        waiting.await.unwrap().assert_refused(CLOSING);
        hall.teardown.open();
        settle().await;
        if let Some(ending) = ending {
            ending.await.unwrap();
        }
        assert_eq!(hall.released(), [Some(3)], "{end}");
        assert_eq!(hall.host.len(), 0, "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_activation_leaves_its_epoch_open() {
    // H12.5
    let hall = hall(HostOptions::new()).await;
    for _ in 0..3 {
        hall.at(2, "broken")
            .send()
            .await
            .assert_error(418, "broken");
        settle().await;
        assert_eq!(hall.host.len(), 0);
    }
    hall.at(1, "broken").send().await.assert_refused(STALE);
    assert!(hall.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fence_is_forgotten_two_lease_terms_after_its_last_update() {
    // H12.7, E13: 30 s without an acknowledgement.
    let hall = hall(HostOptions::new()).await;
    hall.seated(5, "a").await;
    hall.aborted("a").await;
    pass(59_990).await;
    hall.at(5, "a").send().await.assert_refused(RELEASED);
    // H12.6: the refusal has not made it younger.
    pass(20).await;
    hall.seated(1, "a").await;

    // As last acknowledged: 15 s.
    hall.app
        .worker
        .lease()
        .renewed(Duration::from_secs(15), None);
    hall.aborted("a").await;
    pass(14_000).await;
    hall.app
        .worker
        .lease()
        .renewed(Duration::from_secs(15), None);
    pass(14_000).await;
    hall.at(1, "a").send().await.assert_refused(RELEASED);
    hall.app
        .worker
        .lease()
        .renewed(Duration::from_secs(15), None);
    pass(2_010).await;
    hall.seated(1, "a").await;
}

#[tokio::test(start_paused = true)]
async fn an_admission_makes_a_fence_younger() {
    // H12.6: admitted by the fence, refused by the capacity.
    let hall = hall(HostOptions::new().max_instances(1)).await;
    hall.seated(1, "resident").await;
    hall.at(5, "a").send().await;
    pass(40_000).await;
    hall.at(5, "a")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
    pass(40_000).await;
    hall.at(4, "a").send().await.assert_refused(STALE);
    pass(20_010).await;
    hall.at(4, "a")
        .send()
        .await
        .assert_refused("instance capacity reached; retry");
}

#[tokio::test(start_paused = true)]
async fn the_fence_of_a_live_instance_is_not_forgotten() {
    // H3.11
    let hall = hall(HostOptions::new()).await;
    hall.seated(5, "a").await;
    pass(200_000).await;
    hall.at(4, "a").send().await.assert_refused(STALE);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_there_is_no_epoch_to_read() {
    // H12.8
    let app = App::start(
        PinnedWorker::builder()
            .host::<Seat>("/seats")
            .state(Gate::closed()),
    )
    .await;
    let text = app.get("/seats/a/epoch").epoch(3).text().await;
    assert!(text.contains("state store"), "{text}");
    // W9.1: the fence itself is honoured in local mode too.
    app.get("/seats/a")
        .epoch(2)
        .send()
        .await
        .assert_refused(STALE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_epochs_the_highest_wins() {
    // H12.3, H3.11
    let hall = hall(HostOptions::new()).await;
    for round in 0..20 {
        let id = format!("id-{round}");
        let calls: Vec<_> = (1..=32)
            .map(|epoch| spawn(hall.at(epoch, &id).send()))
            .collect();
        for (epoch, call) in (1..).zip(calls) {
            let reply = call.await.unwrap();
            if reply.status != 200 {
                assert!(epoch < 32);
                reply.assert_refused(STALE);
            }
        }
        hall.at(31, &id).send().await.assert_refused(STALE);
        let epochs: Vec<u64> = hall
            .store
            .0
            .lock()
            .iter()
            .filter(|(known, _)| *known == id)
            .map(|(_, epoch)| *epoch)
            .collect();
        assert!(
            epochs.is_sorted() && epochs.last() == Some(&32),
            "{epochs:?}"
        );
    }
}
