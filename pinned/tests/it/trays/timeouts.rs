//! The timeout of a dispatch: T11.6, T18.1.

use super::lane::WorkInbox as _;
use super::world;
use crate::app::{pass, settle};

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_cut_off_and_parks_in_the_end() {
    // T11.6, edge case 12
    let world = world().await;
    world.script.hang(1);
    world.script.hang(1);
    let _ = world.work().await.enqueue(1).unwrap();
    pass(59_000).await;
    assert!(!world.is_gone());
    pass(1_001).await;
    assert!(world.is_gone());
    assert_eq!(
        world.work_row(),
        (true, r#"{"queue":[{"n":1}],"~attempts":1}"#.to_owned())
    );
    world.lane().await;
    pass(60_001).await;
    assert!(world.is_gone());
    let work = world.work().await;
    settle().await;
    assert!(work.is_parked().unwrap());
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
    assert_eq!(world.script.ended(), [0_u64; 0]);
}
