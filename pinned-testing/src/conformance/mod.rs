//! The checks that every implementation of a contract must pass.
//!
//! Each check makes what it works on itself, under keys of its own, so that one store serves a whole suite and may keep
//! what earlier runs left in it. A check that fails panics with the number of the rule, what was expected and what
//! came instead. The checks follow one another; within one, many tasks may run at once, which shows most on a runtime
//! with several threads.

mod batches;
mod content;
mod contention;
mod dropping;
mod fences;
mod listing;
mod marked;
mod order;
mod rows;
mod scene;
mod setup;

use std::sync::Arc;

use pinned::durability::StateStore;

use self::scene::Scene;

/// Checks a state store against its contract (S10, D1 to D6).
///
/// `open` gives the store under test: a new handle of the same store at each call, or one and the same.
///
/// ```
/// use std::sync::Arc;
///
/// use pinned::durability::{MemoryStore, StateStore};
/// use pinned_testing::conformance;
///
/// # /*
/// #[tokio::test(flavor = "multi_thread")]
/// # */
/// # #[tokio::main(flavor = "current_thread")]
/// async fn the_store_keeps_the_contract() {
///     let store = MemoryStore::new();
///     conformance::state_store(|| async { Arc::new(store.clone()) as Arc<dyn StateStore> }).await;
/// }
/// # fn main() { the_store_keeps_the_contract() }
/// ```
///
/// # Panics
///
/// At the first check that fails.
pub async fn state_store<F, Fut>(open: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn StateStore>>,
{
    let scene = Scene::new(open().await);
    setup::checks(&scene, open().await).await;
    fences::checks(&scene).await;
    rows::checks(&scene).await;
    listing::checks(&scene).await;
    content::checks(&scene).await;
    order::checks(&scene).await;
    batches::checks(&scene).await;
    marked::checks(&scene).await;
    dropping::checks(&scene).await;
    contention::checks(&scene).await;
}
