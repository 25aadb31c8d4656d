//! What a call carries there and back, on one worker and across two (W14.4, W14.6).

use axum::body::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use pinned::{Cluster, ClusterError};
use serde_json::{Value, json};

use super::*;
use crate::app::settle;

/// Node `a` on the first worker, with a desk beside it and one on the other worker.
async fn fleet() -> (Exchange, Cluster, [&'static str; 2]) {
    let fleet = Exchange::start(2).await;
    fleet.place_at("/desks/far", 1);
    fleet.get("/nodes/a").send().await.assert_ok("a");
    // Only what lives here is called here.
    fleet.get("/desks/near/text").send().await.assert_ok("text");
    let cluster = fleet.context("a").cluster();
    (fleet, cluster, ["/desks/near", "/desks/far"])
}

#[tokio::test(start_paused = true)]
async fn every_verb_goes_with_its_query_and_its_body_and_brings_an_answer() {
    // W14.6
    let (fleet, cluster, desks) = fleet().await;
    for desk in desks {
        let path = format!("{desk}/all?x=1");
        let requests = [
            ("GET", cluster.get(&path)),
            ("POST", cluster.post(&path)),
            ("PUT", cluster.put(&path)),
            ("PATCH", cluster.patch(&path)),
            ("DELETE", cluster.delete(&path)),
            ("POST", cluster.request(Method::POST, &path)),
        ];
        for (verb, request) in requests {
            let answer = request
                .query(&[("y", "a b"), ("z", "/?&")])
                .body("the body")
                .send()
                .await
                .expect(desk);
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
            assert_eq!(answer.headers()["x-desk"], "here");
            let said: Value = answer.json().await.expect("JSON");
            assert_eq!(said["verb"], verb);
            assert_eq!(said["query"], "x=1&y=a+b&z=%2F%3F%26");
            assert_eq!(said["body"], "the body");
        }
        let value = json!({ "n": [1, 2] });
        let answer = cluster
            .post(format!("{desk}/all"))
            .json(&value)
            .send()
            .await;
        let said: Value = answer.expect(desk).json().await.expect("JSON");
        assert_eq!(said["type"], "application/json");
        assert_eq!(said["body"], value.to_string());
    }
    assert_eq!(
        fleet.header("/desks/far/all", "pinboard-from").as_deref(),
        Some("/nodes/a")
    );
    assert_eq!(fleet.header("/desks/near/all", "pinboard-from"), None);
}

#[tokio::test(start_paused = true)]
async fn headers_pass_but_those_of_the_control_plane_and_of_one_connection() {
    // W14.4, in both directions; P5.5
    let (_fleet, cluster, desks) = fleet().await;
    let mut more = HeaderMap::new();
    more.append("x-twice", "1".parse().expect("text"));
    more.append("x-twice", "2".parse().expect("text"));
    more.append("x-mine", "instead".parse().expect("text"));
    for desk in desks {
        let answer = cluster
            .post(format!("{desk}/all"))
            .header("x-mine", "kept")
            .headers(more.clone())
            .header("Host", "elsewhere")
            .header("pinboard-from", "/nodes/eve")
            .header("Pinboard-Chain", "/nodes/a exclusive 0f.1")
            .header("PINBOARD_EPOCH", "9")
            .header("connection", "upgrade, x-mine")
            .header("upgrade", "websocket")
            .header("transfer-encoding", "chunked")
            .header("content-length", "3")
            .body("longer than that")
            .send()
            .await
            .expect(desk);
        for name in answer.headers().keys() {
            assert!(!name.as_str().starts_with("pinboard"), "{name}");
        }
        let said: Value = answer.json().await.expect("JSON");
        assert_eq!(said["body"], "longer than that");
        let names: Vec<&str> = said["headers"]
            .as_array()
            .expect("names")
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| !matches!(*name, "pinboard-attestation" | "pinboard-epoch"))
            .collect();
        assert_eq!(names, ["x-mine", "x-twice", "x-twice"], "{desk}");
        assert_eq!(said["mine"], "instead");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_streams_in_both_directions() {
    let (fleet, cluster, desks) = fleet().await;
    for desk in desks {
        let gate = fleet.named("second");
        let waits = gate.clone();
        let chunks = stream::iter(["first ", "second"]).then(move |chunk| {
            let gate = waits.clone();
            async move {
                if chunk == "second" {
                    gate.pass().await;
                }
                Ok::<_, BoxError>(Bytes::from_static(chunk.as_bytes()))
            }
        });
        let body = Body::from_stream(chunks);
        let sending = crate::app::spawn(cluster.post(format!("{desk}/all")).body(body).send());
        gate.reached(1).await;
        assert!(!sending.is_finished());
        gate.open();
        let answer = sending.await.expect("no panic").expect(desk);
        let said: Value = answer.json().await.expect("JSON");
        assert_eq!(said["body"], "first second");

        let answer = cluster
            .get(format!("{desk}/stream"))
            .send()
            .await
            .expect(desk);
        let mut chunks = answer.into_body().into_data_stream();
        let first = chunks.next().await.expect("a chunk").expect("whole");
        assert_eq!(first, "one");
        fleet.named("more").open();
        let second = chunks.next().await.expect("a chunk").expect("whole");
        assert_eq!(second, "two");
        assert!(chunks.next().await.is_none());
        fleet.close_gate("more");
        fleet.close_gate("second");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_bounds_the_answer_and_its_body() {
    // W14.6
    let (fleet, cluster, desks) = fleet().await;
    let timeout = Duration::from_secs(3);
    for desk in desks {
        let answer = cluster
            .get(format!("{desk}/waits"))
            .timeout(timeout)
            .send()
            .await;
        assert!(
            matches!(answer, Err(ClusterError::TimedOut(after)) if after == timeout),
            "{answer:?}"
        );
        // The head comes, and the rest does not.
        let path = format!("{desk}/stream");
        let answer = cluster
            .get(&path)
            .timeout(timeout)
            .send()
            .await
            .expect(desk);
        let body = answer.text().await;
        assert!(
            matches!(body, Err(ClusterError::TimedOut(after)) if after == timeout),
            "{body:?}"
        );
        // Whoever takes it as a stream takes its time.
        let answer = cluster
            .get(&path)
            .timeout(timeout)
            .send()
            .await
            .expect(desk);
        let mut chunks = answer.into_body().into_data_stream();
        assert!(chunks.next().await.is_some());
        pass(10_000).await;
        fleet.named("more").open();
        let rest = chunks.next().await.expect("a chunk");
        assert_eq!(rest.expect("whole"), "two");
        fleet.close_gate("more");
    }
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_what_was_asked_for_is_an_error() {
    let (_fleet, cluster, desks) = fleet().await;
    for desk in desks {
        let answer = cluster
            .get(format!("{desk}/text"))
            .send()
            .await
            .expect(desk);
        let read = answer.json::<Value>().await;
        assert!(matches!(read, Err(ClusterError::Body(_))), "{read:?}");
        let answer = cluster
            .get(format!("{desk}/binary"))
            .send()
            .await
            .expect(desk);
        let read = answer.text().await;
        assert!(matches!(read, Err(ClusterError::Body(_))), "{read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_session_nothing_is_sent() {
    // W14.7
    let exchange = Exchange::default();
    let script = Script::default();
    let registered = script.hold(crate::fleet::REGISTER);
    let app = App::start(exchange.worker().control_plane(Arc::new(script))).await;
    exchange.0.workers.lock().push(app.clone());
    let hosted = app.worker.hosted::<Node>().expect("hosted");
    drop(hosted.read("a").await.expect("activated"));
    let cluster = exchange.context("a").cluster();
    let answer = cluster.get("/desks/far/text").send().await;
    assert!(matches!(answer, Err(ClusterError::NoSession)), "{answer:?}");
    let answer = cluster.websocket("/feeds/far/echo").connect().await;
    assert!(matches!(answer, Err(ClusterError::NoSession)), "{answer:?}");
    assert!(exchange.0.calls.lock().is_empty());
    registered.open();
    settle().await;
    let answer = cluster.get("/desks/far/text").send().await.expect("sent");
    assert_eq!(answer.text().await.expect("text"), "text");
}
