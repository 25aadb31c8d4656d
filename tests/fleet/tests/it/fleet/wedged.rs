//! A worker that is wedged notices it, says so, and gets nothing new; and it is one of many again when that is over.

use std::time::Duration;

use serde_json::Value;

use super::rig::{Rig, Size};
use super::shutdown::{ids_at, listed, who};

const TTL: Duration = Duration::from_secs(2);

async fn fleet() -> Rig {
    Rig::start(Size {
        nodes: 1,
        workers: 2,
        lease_ttl: TTL,
    })
    .await
}

async fn probe(rig: &Rig, url: &str) -> Option<(u16, String)> {
    let asked = rig.http.get(url).timeout(Duration::from_secs(1));
    let answer = asked.send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

async fn probe_is(rig: &Rig, url: &str, status: u16, text: &str) {
    rig.until(&format!("{url} is {status} {text}"), async || {
        let (told, body) = probe(rig, url).await?;
        (told == status && body.contains(text)).then_some(())
    })
    .await;
}

async fn tell(rig: &Rig, url: &str, what: &str) {
    let answer = rig.http.post(format!("{url}/control/{what}")).send().await;
    assert!(answer.expect("the worker answers").status().is_success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_router_hangs_keeps_what_it_has_and_gets_nothing_new() {
    // P2.6, P4.1
    let mut rig = fleet().await;
    let wedged = rig.workers[0].process().pid();
    let other = rig.workers[1].process().pid();
    let url = rig.workers[0].url();
    let ids = ids_at(&rig, "/guests", "h", wedged, 2).await;
    tell(&rig, &url, "hang").await;
    probe_is(&rig, &format!("{url}/readyz"), 503, "router hang").await;
    probe_is(&rig, &format!("{url}/livez"), 503, "router hang").await;
    let reachable = async |is: bool| {
        rig.until(&format!("reachable: {is}"), async || {
            (listed(&rig, &url).await?["reachable"] == is).then_some(())
        })
        .await;
    };
    reachable(false).await;
    for index in 0..20 {
        let served = who(&rig, &format!("/guests/new{index}"))
            .await
            .expect("served");
        assert_eq!(served["pid"], other, "a wedged worker got a new id");
    }
    // Its lease goes on, and with it what lives there.
    tokio::time::sleep(2 * TTL).await;
    for path in &ids {
        assert_eq!(who(&rig, path).await.expect("served")["pid"], wedged);
    }
    tell(&rig, &url, "answer").await;
    probe_is(&rig, &format!("{url}/readyz"), 200, "").await;
    reachable(true).await;
    ids_at(&rig, "/guests", "again", wedged, 1).await;
    rig.check_activity();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_runtime_stalls_says_so_beside_it_and_loses_its_ids_with_its_lease() {
    // P4.1, W4.7, W7.4
    let mut rig = fleet().await;
    let stalled = rig.workers[0].process().pid();
    let other = rig.workers[1].process().pid();
    let url = rig.workers[0].url();
    let log = std::fs::read_to_string(rig.log("worker-0")).expect("a log");
    let probes = log
        .lines()
        .find_map(|line| line.trim().strip_prefix("probes "))
        .expect("the banner names where probes are answered");
    let ready = format!("http://{probes}/readyz");
    probe_is(&rig, &ready, 200, "").await;
    let ids = ids_at(&rig, "/guests", "s", stalled, 2).await;
    tell(&rig, &url, "stall/12000").await;
    for path in &ids {
        rig.until("its ids are served elsewhere", async || {
            (who(&rig, path).await?["pid"] == other).then_some(())
        })
        .await;
    }
    // The lease has ended by then; liveness is about the wedge alone.
    probe_is(&rig, &ready, 503, "lease expired").await;
    probe_is(
        &rig,
        &format!("http://{probes}/livez"),
        503,
        "the runtime stalls",
    )
    .await;
    assert_eq!(
        probe(&rig, &format!("{url}/readyz")).await,
        None,
        "it answers nothing itself"
    );
    probe_is(&rig, &ready, 200, "").await;
    probe_is(&rig, &format!("{url}/livez"), 200, "").await;
    let served: Value = rig
        .until("it takes new ids again", async || {
            let listed = listed(&rig, &url).await?;
            (listed["reachable"] == true).then_some(listed)
        })
        .await;
    assert_eq!(served["draining"], false);
    ids_at(&rig, "/guests", "again", stalled, 1).await;
    let log = std::fs::read_to_string(rig.log("worker-0")).expect("a log");
    assert_eq!(
        log.matches("the self-probe gets no answer").count(),
        1,
        "{log}"
    );
    assert_eq!(
        log.matches("the self-probe is answered again").count(),
        1,
        "{log}"
    );
    rig.check_activity();
}
