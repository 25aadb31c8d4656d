//! Calls and sockets between instances of two workers, through pinboard (W14).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{Rig, Size};

async fn get(rig: &Rig, path: &str) -> Option<Value> {
    let asked = rig.http.get(rig.url(path)).timeout(Duration::from_secs(20));
    let answer = asked.send().await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    answer.json().await.ok()
}

/// Two ids that live on different workers.
async fn neighbours(rig: &Rig) -> [String; 2] {
    let mut homes: HashMap<u64, String> = HashMap::new();
    for index in 0..64 {
        let id = format!("n{index}");
        let who = rig
            .until("an id is placed", async || {
                get(rig, &format!("/links/{id}/who")).await
            })
            .await;
        homes
            .entry(who["pid"].as_u64().expect("a pid"))
            .or_insert(id);
        if homes.len() == 2 {
            break;
        }
    }
    let ids: Vec<String> = homes.into_values().collect();
    ids.try_into().expect("ids on both workers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_sockets_between_two_workers() {
    let rig = Rig::start(Size::default()).await;
    let [a, b] = neighbours(&rig).await;

    // W14.3: a ring is refused at once, by name, and not by the turn timeout.
    let began = Instant::now();
    let ring = format!("/links/{a}/exclusive/links/{b}/shared/links/{a}/who");
    let said = get(&rig, &ring).await.expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(10), "{said}");
    let refused = &said["body"];
    assert_eq!(
        (&said["status"], &refused["status"]),
        (&json!(200), &json!(508)),
        "{said}"
    );
    assert_eq!(
        refused["body"]["detail"],
        format!(
            "call chain would deadlock: /links/{a} (exclusive) -> /links/{b} (shared) -> /links/{a} (shared)"
        )
    );
    // Shared within shared runs.
    let ring = format!("/links/{a}/shared/links/{b}/shared/links/{a}/who");
    let said = get(&rig, &ring).await.expect("an answer");
    assert_eq!(said["body"]["status"], 200, "{said}");
    // Nobody outside can say that a chain holds anything.
    let forged = rig
        .http
        .get(rig.url(&format!("/links/{a}/who")))
        .header("pinboard-chain", format!("/links/{a} exclusive"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(forged.status(), 200);

    // A socket, across the two workers and on one.
    for (from, to) in [(&a, &b), (&b, &a), (&a, &a)] {
        let heard = get(&rig, &format!("/links/{from}/talk/links/{to}/echo")).await;
        assert_eq!(
            heard.expect("an answer"),
            json!({
                "caller": format!("/links/{from} at 1"), "text": "HELLO", "whole": true,
                "closed": "4001 as told", "protocol": "v2",
            }),
            "{}",
            rig.logs()
        );
    }
    let refused = get(&rig, &format!("/links/{a}/talk/links/{b}/who")).await;
    let error = refused.expect("an answer")["error"].to_string();
    assert!(error.contains("the socket was refused: 200"), "{error}");

    // One that a task holds ends with the task, at the latest when its instance is cut off.
    let open = get(&rig, &format!("/links/{a}/hold/links/{b}/echo")).await;
    assert_eq!(open.expect("an answer"), json!({ "open": true }));
    let order = json!({ "namespace": "/links", "id": a, "deadline": 0 });
    let (status, answer) = rig.order("/registry/wind_down", &order).await;
    assert_eq!(status, 200, "{answer}");
    rig.until("the other end hears of it", async || {
        let said = get(&rig, &format!("/links/{b}/ended")).await?;
        said["ended"].as_str()?.starts_with("1001").then_some(())
    })
    .await;
}
