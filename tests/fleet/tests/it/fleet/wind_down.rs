//! What moves one instance: its operator, itself, and the time in which nobody was attached to it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, Size};
use super::shutdown::who;

const TTL: Duration = Duration::from_secs(3);

async fn fleet() -> Rig {
    Rig::start(Size {
        nodes: 1,
        workers: 2,
        lease_ttl: TTL,
    })
    .await
}

async fn epoch(rig: &Rig, path: &str) -> Option<u64> {
    who(rig, path).await?["epoch"].as_str()?.parse().ok()
}

async fn post(rig: &Rig, path: &str) -> u16 {
    let answer = rig.http.post(rig.url(path)).send().await;
    answer.expect("an answer").status().as_u16()
}

/// Waits until the id has been placed anew, and tells the epoch that it has then.
async fn placed_anew(rig: &Rig, path: &str, old: u64) -> u64 {
    rig.until(&format!("{path} is placed anew"), async || {
        epoch(rig, path).await.filter(|epoch| *epoch > old)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_winds_one_id_down_and_its_work_is_cut_off_at_the_deadline() {
    // P3.5, P2.10, W5.5, H10.3
    let rig = fleet().await;
    let (idle, busy, kept) = ("/guests/o-idle", "/guests/o-busy", "/guests/o-kept");
    let mut epochs = Vec::new();
    for path in [idle, busy, kept] {
        epochs.push(epoch(&rig, path).await.expect("served"));
    }
    let hold = rig.http.post(rig.url(&format!("{busy}/hold/600000")));
    let hold = tokio::spawn(hold.send());
    for id in ["o-idle", "o-busy"] {
        let order = json!({ "namespace": "/guests", "id": id, "deadline": 0 });
        let (status, answer) = rig.order("/registry/wind_down", &order).await;
        assert_eq!((status, &answer["queued"]), (200, &json!(true)), "{answer}");
    }
    let ordered = Instant::now();
    // The idle one closes as soon as its worker hears of it.
    placed_anew(&rig, idle, epochs[0]).await;
    // A deadline under one lease becomes one lease.
    let answer = hold.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status().as_u16(), 503);
    let cut = ordered.elapsed();
    assert!(cut > TTL / 2 && cut < 4 * TTL, "{cut:?}");
    placed_anew(&rig, busy, epochs[1]).await;
    assert_eq!(epoch(&rig, kept).await, Some(epochs[2]));

    // One that is taken back in time changes nothing.
    let hold = rig
        .http
        .post(rig.url(&format!("{kept}/hold/{}", 3 * TTL.as_millis())));
    let hold = tokio::spawn(hold.send());
    for deadline in [json!(2 * TTL.as_secs()), json!(null)] {
        let order = json!({ "namespace": "/guests", "id": "o-kept", "deadline": deadline });
        assert_eq!(rig.order("/registry/wind_down", &order).await.0, 200);
    }
    let answer = hold.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(epoch(&rig, kept).await, Some(epochs[2]));
    rig.check_activity();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_asks_to_go_is_handed_back_and_placed_anew_without_a_lease_wait() {
    // H10.2, W3.15
    let rig = fleet().await;
    let path = "/guests/leaves";
    let mut known = epoch(&rig, path).await.expect("served");
    for _ in 0..3 {
        let asked = Instant::now();
        // Far off: it is idle, and goes at once all the same.
        assert_eq!(post(&rig, &format!("{path}/leave/600000")).await, 200);
        known = placed_anew(&rig, path, known).await;
        assert!(asked.elapsed() < TTL, "{:?}", asked.elapsed());
    }
    rig.check_activity();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_to_which_nobody_is_attached_goes_whatever_it_does() {
    // H6.4, W3.15: `detached_timeout` of 1 s, with a task that never ends
    let rig = fleet().await;
    let (alone, attended) = ("/brief/alone", "/brief/attended");
    let mut epochs = Vec::new();
    for path in [alone, attended] {
        epochs.push(epoch(&rig, path).await.expect("served"));
        assert_eq!(post(&rig, &format!("{path}/task")).await, 200);
    }
    let stream = rig.http.get(rig.url(&format!("{attended}/stream")));
    let mut stream = stream.send().await.expect("a stream");
    // Requests are no attachment: asking for it does not keep it.
    placed_anew(&rig, alone, epochs[0]).await;
    let attached = Instant::now();
    while attached.elapsed() < Duration::from_secs(3) {
        assert!(stream.chunk().await.expect("it goes on").is_some());
    }
    assert_eq!(epoch(&rig, attended).await, Some(epochs[1]));
    drop(stream);
    placed_anew(&rig, attended, epochs[1]).await;
    rig.check_activity();
}
