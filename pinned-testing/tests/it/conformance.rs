//! The stores of these crates keep the contract that the suite checks (S10).

use std::sync::Arc;

use pinned::durability::{MemoryStore, StateStore};
use pinned_testing::conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_in_memory_keeps_the_contract() {
    let store = MemoryStore::new();
    conformance::state_store(|| async { Arc::new(store.clone()) as Arc<dyn StateStore> }).await;
}
