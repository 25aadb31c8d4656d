//! Declarations: T1. What a declaration refuses is shown in `tests/ui`.

use pinned::__private::TraySettings;
use pinned::durability::MemoryStore;
use pinned::{PinnedWorker, Tray, TrayError, pinned_api, route};

use super::lane::{Drain, Kept, Lane, Work};
use super::world;
use crate::app::{App, settle};

#[test]
fn what_is_not_said_is_ten_deliveries_of_half_a_day() {
    // T1.4
    let TraySettings {
        version,
        max_attempts,
        dispatch_timeout,
        drain_on_eviction,
    } = Kept::SETTINGS;
    assert_eq!(
        (version, max_attempts, dispatch_timeout.as_secs()),
        (0, 10, 43_200)
    );
    assert!(!drain_on_eviction);
    assert_eq!(
        (
            Work::SETTINGS.max_attempts,
            Work::SETTINGS.dispatch_timeout.as_secs()
        ),
        (2, 60)
    );
    let drain = Drain::SETTINGS;
    assert!(drain.drain_on_eviction);
}

#[tokio::test(start_paused = true)]
async fn a_tray_has_the_name_of_its_handler_and_a_single_one_its_own_id() {
    // T1.2, T1.3
    assert_eq!((Lane::WORK.name(), Lane::ROOMS.name()), ("work", "rooms"));
    let world = world().await;
    let work = world.work().await;
    assert_eq!((&*work.key().tray_ns, work.id()), ("work", "~"));
    settle().await;
    assert_eq!(world.row("work", "~"), super::stored(false, "{}"));
    assert_eq!(world.row("drain", "~"), super::stored(false, "{}"));
}

#[derive(Default)]
struct Plain;

#[pinned_api("/plain")]
impl Plain {
    #[route::get("/")]
    async fn get(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_tray_that_nobody_declares_or_can_keep_is_an_error_where_it_is_asked_for() {
    // T1.7: whoever hosts a type with trays has a store, so only a type without can do without.
    let builder = || PinnedWorker::builder().host::<Plain>("/plain");
    let app = App::start(builder()).await;
    let host = app.worker.hosted::<Plain>().expect("mounted");
    let ctx = host.instance("a").await.expect("live").context();
    let single = ctx.tray(Lane::WORK).await;
    assert!(matches!(single, Err(TrayError::NoStateStore(_))));
    let map = ctx.trays(Lane::ROOMS);
    assert!(matches!(map, Err(TrayError::NoStateStore(_))));
    let app = App::start(builder().store(MemoryStore::new())).await;
    let host = app.worker.hosted::<Plain>().expect("mounted");
    let ctx = host.instance("a").await.expect("live").context();
    let single = ctx.tray(Lane::WORK).await;
    assert!(matches!(single, Err(TrayError::Undeclared(_))));
}
