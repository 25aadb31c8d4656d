//! The store that can fail.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinboard::store::{
    Claim, Claimed, Expected, Invalidation, MemoryStore, PlacementKey, RegistryStore, SessionId,
    StoreOptions,
};
use pinboard::testing::conformance::{self, RegistryFleet, RegistryHarness};
use pinboard::testing::{CutOff, FaultyStore, StoreFault, StoreFaults, StoreOp};
use pinned_domain::Domain;
use pinned_testing::sim::Sim;

use super::plane::record;

fn store(domain: &Domain) -> (FaultyStore, StoreFaults, MemoryStore) {
    let options = StoreOptions {
        lease_ttl: Duration::from_secs(15),
        quarantine: Duration::ZERO,
        shards: 1,
    };
    let memory = MemoryStore::new(options, domain.clone());
    let (faulty, faults) = FaultyStore::new(Arc::new(memory.node()), domain.clone());
    (faulty, faults, memory)
}

/// A session, and a claim of an id for it.
async fn claim(store: &dyn RegistryStore) -> Claim {
    let candidate = SessionId::new("session-1");
    let session = pinboard::store::NewSession {
        id: candidate.clone(),
        record: record("client-1", "http://worker-1"),
    };
    store.register(session).await.expect("registered");
    Claim {
        key: PlacementKey::single("/counters", "alice"),
        candidate,
        expected: Expected::Vacant,
        above: 0,
    }
}

#[test]
fn without_faults_it_is_the_store_behind_it() {
    struct Harness(Domain);
    struct Fleet(MemoryStore, Domain);

    impl RegistryHarness for Harness {
        fn domain(&self) -> Domain {
            self.0.clone()
        }

        fn virtual_time(&self) -> bool {
            true
        }

        fn fleet(&self, options: StoreOptions) -> BoxFuture<'_, Box<dyn RegistryFleet>> {
            let store = MemoryStore::new(options, self.0.clone());
            let fleet = Fleet(store, self.0.clone());
            Box::pin(async { Box::new(fleet) as Box<dyn RegistryFleet> })
        }
    }

    impl RegistryFleet for Fleet {
        fn node(&self) -> BoxFuture<'_, Arc<dyn RegistryStore>> {
            let (store, _) = FaultyStore::new(Arc::new(self.0.node()), self.1.clone());
            Box::pin(async { Arc::new(store) as Arc<dyn RegistryStore> })
        }

        fn wipe(&self) -> BoxFuture<'_, ()> {
            Box::pin(async { self.0.wipe() })
        }
    }

    Sim::run(1, |sim| async move {
        let harness = Harness(sim.domain());
        conformance::registry_store_state(&harness).await;
        conformance::registry_store_losses(&harness).await;
    });
}

#[test]
fn a_call_fails_before_it_happens_or_after() {
    Sim::run(1, |sim| async move {
        let (store, faults, memory) = store(&sim.domain());
        let claim = claim(&memory).await;
        faults.next(StoreOp::Claim, StoreFault::Before);
        assert!(store.claim(claim.clone()).await.is_err());
        assert_eq!(memory.row(&claim.key).await.expect("a row"), None);
        faults.next(StoreOp::Claim, StoreFault::After);
        assert!(store.claim(claim.clone()).await.is_err());
        assert!(memory.row(&claim.key).await.expect("a row").is_some());
        let claimed = store.claim(claim).await.expect("an answer");
        assert!(matches!(claimed, Claimed::Held(_)), "{claimed:?}");
        assert_eq!((faults.calls(StoreOp::Claim), faults.all_calls()), (3, 3));
    });
}

#[test]
fn a_script_sees_every_call() {
    Sim::run(1, |sim| async move {
        let (store, faults, memory) = store(&sim.domain());
        let claim = claim(&memory).await;
        let key = claim.key.clone();
        faults.script(move |call| {
            let hits = call.key.as_ref() == Some(&key) && call.index == 2;
            hits.then_some(StoreFault::Before)
        });
        assert!(store.ping().await.is_ok());
        assert!(store.row(&claim.key).await.is_err());
        assert!(store.row(&claim.key).await.is_ok());
        faults.calm();
        assert!(store.claim(claim).await.is_ok());
    });
}

#[test]
fn an_answer_may_never_come() {
    Sim::run(1, |sim| async move {
        let domain = sim.domain();
        let (store, faults, memory) = store(&domain);
        let claim = claim(&memory).await;
        let key = claim.key.clone();
        faults.next(StoreOp::Claim, StoreFault::Silence);
        let hour = Duration::from_secs(3600);
        assert!(domain.timeout(hour, store.claim(claim)).await.is_err());
        assert!(memory.row(&key).await.expect("a row").is_some());
    });
}

#[test]
fn rates_are_kept_and_a_seed_repeats_them() {
    let failures = |seed| {
        Sim::run(seed, |sim| async move {
            let (store, faults, _memory) = store(&sim.domain());
            faults.rates(0.25, 0.25);
            let mut failures = Vec::new();
            for n in 0..400 {
                if store.ping().await.is_err() {
                    failures.push(n);
                }
            }
            failures
        })
    };
    let some = failures(7);
    assert!((150..250).contains(&some.len()), "{}", some.len());
    assert_eq!(some, failures(7));
    assert_ne!(some, failures(8));
}

#[test]
fn calls_take_their_time() {
    Sim::run(1, |sim| async move {
        let (store, faults, _memory) = store(&sim.domain());
        let each_way = Duration::from_millis(5);
        faults.latency(each_way..=each_way);
        store.ping().await.expect("an answer");
        assert_eq!(sim.elapsed(), 2 * each_way);
    });
}

#[test]
fn a_store_that_is_cut_off_fails_until_it_is_back() {
    Sim::run(1, |sim| async move {
        let (store, faults, memory) = store(&sim.domain());
        let claim = claim(&memory).await;
        faults.cut(CutOff::Refused);
        assert!(store.claim(claim.clone()).await.is_err());
        assert_eq!(sim.elapsed(), Duration::ZERO);
        let limit = Duration::from_secs(1);
        faults.cut(CutOff::Silent(limit));
        let error = store.claim(claim.clone()).await.expect_err("no answer");
        assert!(error.is_transient(), "{error}");
        assert_eq!(sim.elapsed(), limit);
        assert_eq!(memory.row(&claim.key).await.expect("a row"), None);
        faults.restore();
        assert!(store.claim(claim).await.is_ok());
    });
}

// P5.7, P12.4
#[test]
fn invalidations_are_lost_while_it_is_cut_off_and_made_up_for() {
    Sim::run(1, |sim| async move {
        let (store, faults, memory) = store(&sim.domain());
        let claim = claim(&memory).await;
        let mut told = store.invalidations().expect("it can tell");
        assert!(store.invalidations().is_none(), "once");
        store.claim(claim.clone()).await.expect("placed");
        let row = || store.row(&claim.key);

        row().await.expect("a row");
        memory.fence(&claim.key, None).await.expect("fenced");
        assert_eq!(
            told.recv().await,
            Some(Invalidation::Row(claim.key.clone()))
        );

        row().await.expect("a row");
        sim.advance(Duration::ZERO).await;
        faults.cut(CutOff::Refused);
        sim.advance(Duration::ZERO).await;
        memory.fence(&claim.key, None).await.expect("fenced");
        sim.advance(Duration::from_secs(10)).await;
        assert!(told.try_recv().is_err(), "nothing comes through");
        faults.restore();
        assert_eq!(told.recv().await, Some(Invalidation::Everything));
    });
}
