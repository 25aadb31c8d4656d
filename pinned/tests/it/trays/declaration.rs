//! Declarations: T1. What a declaration refuses is shown in `tests/ui`.

use pinned::__private::TraySettings;
use pinned::{Tray, TrayError};

use super::lane::{Drain, Kept, Lane, Work};
use super::world;
use crate::app::settle;

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
    assert!(Drain::SETTINGS.drain_on_eviction);
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

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_store_says_so() {
    // T1.7: a type with trays asks for one at the start; without it, first access is an error.
    let worker = pinned::PinnedWorker::builder()
        .host_with::<Lane>(super::lane::options())
        .state(super::script::Script::default())
        .build();
    let Ok(worker) = worker else {
        return;
    };
    let Ok(_running) = worker.run_lifespan().await else {
        return;
    };
    let lane = worker
        .hosted::<Lane>()
        .unwrap()
        .instance("a")
        .await
        .unwrap();
    assert!(matches!(
        lane.tray(Lane::WORK).await,
        Err(TrayError::NoStateStore(_))
    ));
    assert!(matches!(
        lane.trays(Lane::ROOMS),
        Err(TrayError::NoStateStore(_))
    ));
}
