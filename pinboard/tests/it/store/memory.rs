//! The store in memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinboard::store::{MemoryCopy, MemoryStore, RegistryStore, StoreOptions};
use pinboard::testing::conformance::{self, RegistryFleet, RegistryHarness};
use pinned_domain::Domain;
use pinned_testing::sim::{Sim, SimOptions};

struct Memory {
    domain: Domain,
    virtual_time: bool,
}

struct Fleet {
    store: MemoryStore,
    copy: Mutex<Option<MemoryCopy>>,
}

impl RegistryHarness for Memory {
    fn domain(&self) -> Domain {
        self.domain.clone()
    }

    fn virtual_time(&self) -> bool {
        self.virtual_time
    }

    fn fleet(&self, options: StoreOptions) -> BoxFuture<'_, Box<dyn RegistryFleet>> {
        let fleet = Fleet {
            store: MemoryStore::new(options, self.domain.clone()),
            copy: Mutex::default(),
        };
        Box::pin(async { Box::new(fleet) as Box<dyn RegistryFleet> })
    }
}

impl RegistryFleet for Fleet {
    fn node(&self) -> BoxFuture<'_, Arc<dyn RegistryStore>> {
        Box::pin(async { Arc::new(self.store.node()) as Arc<dyn RegistryStore> })
    }

    fn wipe(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.store.wipe() })
    }

    fn copy(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { self.copy.lock().replace(self.store.copy()).is_none() })
    }

    fn restart_from_copy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(copy) = self.copy.lock().take() {
                self.store.restart_from_copy(&copy);
            }
        })
    }
}

fn simulated(sim: &Sim) -> Memory {
    Memory {
        domain: sim.domain(),
        virtual_time: true,
    }
}

#[test]
fn its_state_is_what_the_contract_says() {
    Sim::run(1, |sim| async move {
        conformance::registry_store_state(&simulated(&sim)).await;
    });
}

#[test]
fn its_time_is_exact() {
    let days = Duration::from_secs(200 * 86_400);
    let options = SimOptions::new(2).horizon(days);
    let outcome = Sim::try_run(options, |sim| async move {
        conformance::registry_store_time(&simulated(&sim)).await;
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn its_losses_are_cold_starts() {
    Sim::run(3, |sim| async move {
        conformance::registry_store_losses(&simulated(&sim)).await;
    });
}

#[test]
fn nodes_of_a_simulation_contend_for_it() {
    for seed in 0..8 {
        Sim::run(seed, |sim| async move {
            conformance::registry_store_contention(&simulated(&sim)).await;
        });
    }
}

// P12.5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_contend_for_it() {
    let harness = Memory {
        domain: Domain::real(),
        virtual_time: false,
    };
    conformance::registry_store_contention(&harness).await;
}

/// As a store that cannot wait for days at no cost would be checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_the_contract_by_the_real_clock() {
    let harness = Memory {
        domain: Domain::real(),
        virtual_time: false,
    };
    conformance::registry_store(&harness).await;
}
