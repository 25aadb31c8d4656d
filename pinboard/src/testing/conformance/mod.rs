//! The checks that every [`RegistryStore`](crate::store::RegistryStore) must pass.
//!
//! A [`RegistryHarness`] makes the stores; [`registry_store`] checks them. A check that fails panics with the number of the
//! rule, what was expected and what came instead.
//!
//! The checks come in four groups, each on a fleet of its own. In the first nothing expires, and the checks follow one
//! another. The second has the shortest leases that the harness's clock allows, and waits for all of them at once. In the
//! third the store loses what it knew. The last one is for many nodes at a time, and shows most on a runtime with several
//! threads.

mod changes;
mod contention;
mod dropping;
mod epochs;
mod events;
mod fences;
mod harness;
mod history;
mod invalidations;
mod leases;
mod messages;
mod orders;
mod placements;
mod quarantine;
mod reclaim;
mod release;
mod scene;
mod sessions;
mod sweep;
mod verdict;

pub use harness::{RegistryFleet, RegistryHarness};

use self::scene::{Pace, Scene};

/// Checks a registry store against its contract: all four groups.
///
/// # Panics
///
/// At the first check that fails.
pub async fn registry_store(harness: &dyn RegistryHarness) {
    registry_store_state(harness).await;
    registry_store_time(harness).await;
    registry_store_losses(harness).await;
    registry_store_contention(harness).await;
}

/// The first group: what each operation does to what is there.
///
/// # Panics
///
/// At the first check that fails.
pub async fn registry_store_state(harness: &dyn RegistryHarness) {
    let scene = Scene::open(harness, Pace::Steady).await;
    sessions::checks(&scene).await;
    changes::checks(&scene).await;
    placements::checks(&scene).await;
    release::checks(&scene).await;
    fences::checks(&scene).await;
    reclaim::checks(&scene).await;
    messages::checks(&scene).await;
    orders::checks(&scene).await;
    events::checks(&scene).await;
    leases::checks(&scene).await;
    sweep::checks(&scene).await;
    invalidations::checks(&scene).await;
    dropping::checks(&scene).await;
    // Last, because they leave the counters far above the clock.
    epochs::checks(&scene).await;
}

/// The second group: what expires, begins and counts down.
///
/// # Panics
///
/// At the first check that fails.
pub async fn registry_store_time(harness: &dyn RegistryHarness) {
    let scene = Scene::open(harness, Pace::Timed).await;
    tokio::join!(
        sessions::timed(&scene),
        changes::timed(&scene),
        release::timed(&scene),
        fences::timed(&scene),
        messages::timed(&scene),
        orders::timed(&scene),
        leases::timed(&scene),
        sweep::timed(&scene),
    );
}

/// The third group: cold starts, wipes and old copies.
///
/// # Panics
///
/// At the first check that fails.
pub async fn registry_store_losses(harness: &dyn RegistryHarness) {
    let scene = Scene::open(harness, Pace::Guarded).await;
    quarantine::checks(&scene).await;
    invalidations::losses(&scene).await;
}

/// The last group: many nodes at once (P12.5).
///
/// # Panics
///
/// At the first check that fails.
pub async fn registry_store_contention(harness: &dyn RegistryHarness) {
    let scene = Scene::open(harness, Pace::Steady).await;
    contention::checks(&scene).await;
    history::checks(&scene).await;
}
