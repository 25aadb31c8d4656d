//! Faults that must lose nothing, alone and two at a time (P12.1, P12.2, P12.4).

use std::time::Duration;

use super::load::{Kind, Load, all_executed};
use super::rig::{Rig, Size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    WorkerKilled,
    NodeKilled,
    RedisFlushed,
    RedisRestarted,
    PostgresRestarted,
    WorkerPaused,
}

const ALL: [Fault; 6] = [
    Fault::WorkerKilled,
    Fault::NodeKilled,
    Fault::RedisFlushed,
    Fault::RedisRestarted,
    Fault::PostgresRestarted,
    Fault::WorkerPaused,
];

const TTL: Duration = Duration::from_secs(2);

impl Fault {
    async fn strike(self, rig: &mut Rig) {
        match self {
            Self::WorkerKilled => rig.workers[0].kill(),
            Self::NodeKilled => rig.nodes[1].kill(),
            Self::RedisFlushed => rig.redis.flush().await,
            Self::RedisRestarted => rig.redis.kill().await,
            Self::PostgresRestarted => rig.postgres.restart().await,
            Self::WorkerPaused => rig.workers[1].process().stop(),
        }
    }

    async fn mend(self, rig: &mut Rig) {
        match self {
            Self::WorkerKilled => rig.start_worker(0),
            Self::NodeKilled => rig.start_node(1),
            Self::RedisRestarted => rig.redis.restart().await,
            Self::WorkerPaused => rig.workers[1].process().go_on(),
            Self::RedisFlushed | Self::PostgresRestarted => {}
        }
    }
}

/// Strikes with `faults` under load, mends them, and checks that nothing was lost.
async fn survives(rig: &mut Rig, story: usize, faults: &[Fault]) {
    let load = Load::start(rig, &format!("s{story}"), Kind::Enqueue, 4, 5);
    tokio::time::sleep(TTL / 4).await;
    for fault in faults {
        fault.strike(rig).await;
    }
    // Past the lease: whoever was cut off has lost its ids by now.
    tokio::time::sleep(TTL + TTL / 2).await;
    for fault in faults {
        fault.mend(rig).await;
    }
    rig.settled().await;
    tokio::time::sleep(TTL / 4).await;
    let outcome = load.end().await;
    assert!(
        outcome.items() > 0,
        "{faults:?}: nothing was admitted: {:?}",
        outcome.errors
    );
    all_executed(rig, 0, &outcome.confirmed).await;
    let activations = rig.check_activity();
    println!(
        "{faults:?}: {} requests, {} items confirmed and executed, {activations} activations so far",
        outcome.sent,
        outcome.items()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_alone_and_any_two_at_once_lose_nothing() {
    // P12.1, P12.2, P12.4, P4.6
    let size = Size {
        nodes: 2,
        workers: 3,
        lease_ttl: TTL,
    };
    let mut rig = Rig::start(size).await;
    let mut stories: Vec<Vec<Fault>> = ALL.iter().map(|fault| vec![*fault]).collect();
    for (index, one) in ALL.iter().enumerate() {
        stories.extend(ALL[index + 1..].iter().map(|other| vec![*one, *other]));
    }
    // All of them.
    stories.push(ALL.to_vec());
    for (index, faults) in stories.iter().enumerate() {
        survives(&mut rig, index, faults).await;
    }
}
