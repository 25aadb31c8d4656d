//! Ids placed per second on one Redis by four nodes at once, beside a bare script of five keys.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bench::{Result, compare::median, options::Options};
use pinboard::store::{
    Claim, Claimed, Expected, NewSession, PlacementKey, RedisStore, RegistryStore, SessionId,
    SessionRecord, SessionUpdate, StoreOptions,
};
use pinned_domain::Domain;
use pinned_testing::RedisServer;
use pinned_wire::registry::{Secret, Takeover};
use tokio::task::JoinSet;

const NODES: usize = 4;

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let ids: usize = options.take("--ids", 100_000)?;
    let in_flight: usize = options.take("--in-flight", 64)?;
    let rounds: usize = options.take("--rounds", 3)?;
    options.finish()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let redis = RedisServer::start().await;
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            redis.flush().await;
            bare.push(scripts(redis.url(), ids, in_flight).await?);
            redis.flush().await;
            ours.push(claims(redis.url(), ids, in_flight).await?);
            println!(
                "round {round}: {:.0} ids placed/s, {:.0} bare scripts/s",
                ours[round], bare[round]
            );
        }
        let ratio = median(ours.iter().zip(&bare).map(|(ours, bare)| ours / bare));
        println!("ratio: {ratio:.3}");
        Ok(())
    })
}

/// Runs `work` for each number below `count`, so many at a time on each of the nodes; how many a second.
async fn spread<N, F>(
    nodes: Vec<N>,
    count: usize,
    in_flight: usize,
    work: impl Fn(N, usize) -> F + Clone + Send + 'static,
) -> Result<f64>
where
    N: Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for node in nodes {
        for _ in 0..in_flight {
            let (node, next, work) = (node.clone(), Arc::clone(&next), work.clone());
            tasks.spawn(async move {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    work(node.clone(), index).await;
                }
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

async fn claims(url: String, ids: usize, in_flight: usize) -> Result<f64> {
    let options = StoreOptions {
        lease_ttl: Duration::from_secs(600),
        quarantine: Duration::from_millis(1),
        shards: 16,
    };
    let url = url.parse()?;
    let domain = Domain::real();
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let store = RedisStore::open(&url, options, &domain)?;
        store.prepare().await?;
        // A node listens to what it is to forget.
        if let Some(mut news) = store.invalidations() {
            tokio::spawn(async move { while news.recv().await.is_some() {} });
        }
        nodes.push(Arc::new(store));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let session = SessionId::new("0".repeat(32));
    nodes[0]
        .register(NewSession {
            id: session.clone(),
            record: record(),
        })
        .await?;
    spread(nodes, ids, in_flight, move |node, index| {
        let claim = Claim {
            key: PlacementKey::single("/counters", format!("user-{index}")),
            candidate: session.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        async move {
            let claimed = node.claim(claim).await;
            assert!(matches!(claimed, Ok(Claimed::Placed { .. })), "{claimed:?}");
        }
    })
    .await
}

fn record() -> SessionRecord {
    SessionRecord {
        client_id: "bench".to_owned(),
        secret: Secret::new("bench"),
        namespaces: vec!["/counters".into()],
        advertise_url: "http://127.0.0.1:1".to_owned(),
        addresses: Vec::new(),
        hostname: "*".into(),
        env: "*".into(),
        envs: Default::default(),
        takeover: Takeover::default(),
        binding_epoch: 0,
        registered_at: 0,
        update: SessionUpdate {
            headroom: 1,
            draining: false,
            reachable: true,
            moved_to: None,
        },
    }
}

/// The least that a claim in one slot could be: five keys, of which it reads three and writes two.
const SCRIPT: &str = "local row = redis.call('GET', KEYS[1])
if row then return row end
local epoch = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, tonumber(ARGV[1]))
if redis.call('EXISTS', KEYS[3]) == 1 and redis.call('EXISTS', KEYS[4]) == 0 then return false end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('SADD', KEYS[5], ARGV[3])
return epoch";

async fn scripts(url: String, count: usize, in_flight: usize) -> Result<f64> {
    let client = redis::Client::open(url)?;
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(client.get_multiplexed_async_connection().await?);
    }
    let script = Arc::new(redis::Script::new(SCRIPT));
    script.load_async(&mut nodes[0]).await?;
    spread(nodes, count, in_flight, move |mut node, index| {
        let script = Arc::clone(&script);
        async move {
            let tag = index % 16;
            let called: redis::RedisResult<redis::Value> = script
                .key(format!("{{s{tag}}}:row:user-{index}"))
                .key(format!("{{s{tag}}}:epoch"))
                .key(format!("{{s{tag}}}:boot"))
                .key(format!("{{s{tag}}}:session"))
                .key(format!("{{s{tag}}}:held"))
                .arg("1700000000000")
                .arg("00000000000000000000000000000000 1700000000000")
                .arg(format!("user-{index}"))
                .invoke_async(&mut node)
                .await;
            assert!(called.is_ok(), "{called:?}");
        }
    })
    .await
}
