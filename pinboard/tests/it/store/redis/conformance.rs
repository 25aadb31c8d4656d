//! The suite that every registry store passes.

use pinboard::testing::conformance::{
    registry_store_contention, registry_store_losses, registry_store_state, registry_store_time,
};

use super::harness::{OnRedis, Servers};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_state_is_what_the_contract_says() {
    registry_store_state(&OnRedis(Servers::single().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_expires_does_so_by_its_clock() {
    registry_store_time(&OnRedis(Servers::single().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_losses_are_cold_starts() {
    registry_store_losses(&OnRedis(Servers::single().await)).await;
}

// P12.5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_contend_for_it() {
    registry_store_contention(&OnRedis(Servers::single().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_a_cluster_is_what_the_contract_says() {
    registry_store_state(&OnRedis(Servers::cluster().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_expires_in_a_cluster_does_so_by_its_clocks() {
    registry_store_time(&OnRedis(Servers::cluster().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_losses_of_a_cluster_are_cold_starts() {
    registry_store_losses(&OnRedis(Servers::cluster().await)).await;
}

// P12.5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_contend_for_a_cluster() {
    registry_store_contention(&OnRedis(Servers::cluster().await)).await;
}
