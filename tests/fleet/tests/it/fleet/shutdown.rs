//! 'Verify the shutdown' of the operations guide, with real processes: a streaming reply through pinboard, SIGTERM to its owner, a
//! drain that ends at its deadline, exit 0, and everything at the other worker at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::rig::{PATIENCE, Rig, Size};

/// As the rig tells its workers.
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);

/// Longer than the drain, so that a wait for a lease could not hide behind it.
const LEASE: Duration = Duration::from_secs(15);

/// Who serves `path` now, if anybody does within two seconds.
pub(super) async fn who(rig: &Rig, path: &str) -> Option<Value> {
    let asked = rig.http.get(rig.url(&format!("{path}/who")));
    let answer = asked.timeout(Duration::from_secs(2)).send().await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    answer.json().await.ok()
}

/// Ids whose names begin with `name` and that the process `pid` serves.
pub(super) async fn ids_at(
    rig: &Rig,
    namespace: &str,
    name: &str,
    pid: u32,
    count: usize,
) -> Vec<String> {
    let mut ids = Vec::new();
    for index in 0..200 {
        let path = format!("{namespace}/{name}{index}");
        let served = who(rig, &path).await.expect("served");
        if served["pid"] == pid {
            ids.push(path);
        }
        if ids.len() == count {
            return ids;
        }
    }
    panic!("of 200 ids, {} live in {pid}", ids.len());
}

/// Opens a stream, reads its first chunk, and tells later how it went on: further chunks until its end, and whether it was ended
/// rather than cut off.
async fn follow(rig: &Rig, path: &str) -> JoinHandle<(usize, bool)> {
    let asked = rig.http.get(rig.url(&format!("{path}/stream")));
    let mut answer = asked.send().await.expect("a stream");
    assert_eq!(answer.status().as_u16(), 200);
    assert!(answer.chunk().await.expect("a chunk").is_some());
    tokio::spawn(async move {
        let mut count = 0;
        loop {
            match answer.chunk().await {
                Ok(Some(_)) => count += 1,
                Ok(None) => return (count, true),
                Err(_) => return (count, false),
            }
        }
    })
}

/// What pinboard knows of the worker at `url`.
pub(super) async fn listed(rig: &Rig, url: &str) -> Option<Value> {
    let listed = rig.operate(0, "/registry/workers").await?;
    let workers = listed["workers"].as_array()?;
    let found = workers.iter().find(|worker| worker["advertiseUrl"] == url);
    found.cloned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shutdown_goes_as_the_guide_verifies_it() {
    // W13.2, W13.4, W17.4, H10.7, P5.10
    let size = Size {
        nodes: 1,
        workers: 2,
        lease_ttl: LEASE,
    };
    let mut rig = Rig::start(size).await;
    let owner = rig.workers[0].process().pid();
    let other = rig.workers[1].process().pid();
    let guests = ids_at(&rig, "/guests", "v", owner, 2).await;
    let (streaming, working) = (&guests[0], &guests[1]);
    let ledger = &ids_at(&rig, "/ledgers", "v-ledger", owner, 1).await[0];
    let enqueue = rig.http.post(rig.url(&format!("{ledger}/enqueue")));
    let admitted = enqueue
        .header("content-type", "application/json")
        .body(json!({ "id": "stored" }).to_string());
    assert!(
        admitted
            .send()
            .await
            .expect("an answer")
            .status()
            .is_success()
    );

    // Step 1: a streaming reply, and work that would go on for ever.
    let stream = follow(&rig, streaming).await;
    let hold = rig.http.post(rig.url(&format!("{working}/hold/600000")));
    let hold = tokio::spawn(hold.send());
    rig.until("the work is under way", async || {
        let stats = rig.operate(0, "/registry/stats").await?;
        let instances: Vec<&Value> = stats["workers"]
            .as_array()?
            .iter()
            .filter_map(|worker| worker["instances"].as_array())
            .flatten()
            .collect();
        let of = |path: &str| {
            let id = path.rsplit('/').next()?;
            instances.iter().find(|row| row["id"] == id)
        };
        let streams = of(streaming)?["connections"] == 1;
        (streams && of(working)?["tasks"] == 1).then_some(())
    })
    .await;
    let terminated = Instant::now();
    rig.workers[0].process().terminate();

    // Step 2: it is draining, takes nothing new, and serves what it still has.
    let url = rig.workers[0].url();
    rig.until("pinboard knows that it drains", async || {
        (listed(&rig, &url).await?["draining"] == true).then_some(())
    })
    .await;
    let (chunks, is_whole) = tokio::time::timeout(PATIENCE, stream)
        .await
        .expect("the stream ends at once, long before the deadline")
        .expect("no panic");
    assert!(is_whole, "cut off after {chunks} chunks more");
    for index in 0..20 {
        let served = who(&rig, &format!("/guests/new{index}"))
            .await
            .expect("served");
        assert_eq!(served["pid"], other, "a draining worker took a new id");
    }
    // What streamed has moved already: its placement was handed back before the stream ended.
    let moved = who(&rig, streaming).await.expect("served at once");
    assert_eq!(moved["pid"], other);
    assert!(
        terminated.elapsed() < DRAIN_DEADLINE,
        "{:?}",
        terminated.elapsed()
    );
    let kept = who(&rig, working).await.expect("served where it lives");
    assert_eq!(
        kept["pid"], owner,
        "existing work goes on until the deadline"
    );

    // Step 3: at the deadline what is left is closed, and the process ends by itself, with 0.
    let answer = hold.await.expect("no panic").expect("an answer");
    let ended_after = terminated.elapsed();
    assert_eq!(answer.status().as_u16(), 503);
    let status = rig.workers[0].process().ended_within(PATIENCE).await;
    assert_eq!(status.code(), Some(0), "{}", rig.logs());
    assert!(
        (DRAIN_DEADLINE..DRAIN_DEADLINE + Duration::from_secs(5)).contains(&ended_after),
        "{ended_after:?}"
    );
    rig.workers[0].running = None;

    // Step 4: the other worker has it all, and no lease was waited for.
    let ended = Instant::now();
    for path in [streaming, working, ledger] {
        let served = who(&rig, path).await.expect("served at once");
        assert_eq!(served["pid"], other);
    }
    assert!(ended.elapsed() < LEASE / 5, "{:?}", ended.elapsed());
    let id = ledger.rsplit('/').next().expect("an id");
    rig.until("the stored work is there", async || {
        rig.executed(0, id).await?["stored"].is_u64().then_some(())
    })
    .await;
    assert!(listed(&rig, &url).await.is_none(), "it has deregistered");
    rig.check_activity();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_that_the_program_asks_for_empties_the_worker_and_is_revoked() {
    // W13.1, W4.11, H10.6: `worker.drain(deadline)`, `worker.drain(None)`
    let size = Size {
        nodes: 1,
        workers: 2,
        lease_ttl: Duration::from_secs(15),
    };
    let mut rig = Rig::start(size).await;
    let owner = rig.workers[0].process().pid();
    let other = rig.workers[1].process().pid();
    let url = rig.workers[0].url();
    let ids = ids_at(&rig, "/guests", "d", owner, 3).await;
    let hold = rig.http.post(rig.url(&format!("{}/hold/600000", ids[0])));
    let hold = tokio::spawn(hold.send());
    rig.until("the work is under way", async || {
        let stats = rig.operate(0, "/registry/stats").await?;
        let rows = stats["workers"].as_array()?.iter();
        let mut rows = rows
            .filter_map(|worker| worker["instances"].as_array())
            .flatten();
        rows.any(|row| row["tasks"] == 1).then_some(())
    })
    .await;
    let told = async |what: &str| {
        let answer = rig.http.post(format!("{url}/control/{what}")).send().await;
        assert!(answer.expect("the worker answers").status().is_success());
    };
    let begun = Instant::now();
    told("drain/3000").await;
    for path in &ids[1..] {
        rig.until(
            "idle ones close at once and are served elsewhere",
            async || (who(&rig, path).await?["pid"] == other).then_some(()),
        )
        .await;
    }
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    let answer = hold.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status().as_u16(), 503);
    let cut = begun.elapsed();
    assert!((3_000..8_000).contains(&cut.as_millis()), "{cut:?}");
    let served = who(&rig, &ids[0]).await.expect("served at once");
    assert_eq!(served["pid"], other);

    told("revoke").await;
    rig.until("it takes new ids again", async || {
        (listed(&rig, &url).await?["draining"] == false).then_some(())
    })
    .await;
    ids_at(&rig, "/guests", "again", owner, 1).await;
    assert_eq!(
        rig.workers[0].process().pid(),
        owner,
        "the process has stayed"
    );
    rig.check_activity();
}
