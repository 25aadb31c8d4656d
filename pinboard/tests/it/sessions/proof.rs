//! The proof that an advertised URL is the worker's own (P2.3).

use std::time::Duration;

use pinned_wire::headers::PROXY_SECRET;
use serde_json::json;

use super::rig::{Script, Worker, World, address};

#[tokio::test(start_paused = true)]
async fn the_url_is_asked_with_the_secret_below_its_own_path() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.url = "http://10.0.0.1:8000/app/".to_owned();
    worker
        .register_with(
            &node,
            json!({"challenge": "a b&c=d", "challengeValue": "value-of-a b&c=d"}),
        )
        .await;

    let asked = world.urls.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].url.as_str(),
        "http://10.0.0.1:8000/app/_pinned/challenge?challenge=a+b%26c%3Dd"
    );
    assert_eq!(asked[0].method, http::Method::GET);
    assert_eq!(asked[0].headers.len(), 1);
    assert_eq!(asked[0].headers[PROXY_SECRET], worker.secret);
    assert_eq!(asked[0].timeout, Duration::from_secs(5));
    assert_eq!(asked[0].addresses, Some(vec![address("10.0.0.1:8000")]));
    // P1.5
    assert!(!format!("{:?}", asked[0]).contains(&worker.secret));
}

#[tokio::test(start_paused = true)]
async fn a_url_that_is_not_up_yet_is_tried_again() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let server_error = "it answered with a server error";
    for (script, why) in [
        (Script::Refuses, "no connection could be made"),
        (Script::Breaks, "no valid answer came"),
        (Script::Hangs, "it did not answer in time"),
        (Script::Fixed(500, String::new()), server_error),
        (Script::Fixed(502, String::new()), server_error),
        (
            Script::Fixed(503, r#"{"value":"x"}"#.to_owned()),
            server_error,
        ),
    ] {
        world.urls.script(&worker.url, script);
        let answer = worker.try_register(&node, json!({})).await;
        answer.refuses(503, &format!("advertiseUrl did not answer: {why}"));
    }
    let sessions = world.store.sessions_since(0).await.expect("the store");
    assert!(sessions.changed.is_empty());

    worker.answers(&world);
    worker.register(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_url_that_is_someone_elses_is_refused() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let unknown = "it does not know the challenge";
    let other = "it answered something else";
    let redirect = "it redirected, and is not followed";
    let value = r#"{"value":"value-of-c"}"#;
    for (script, why) in [
        (Script::Worker("another secret".to_owned()), unknown),
        (Script::Fixed(400, String::new()), unknown),
        (Script::Fixed(404, value.to_owned()), unknown),
        (Script::Fixed(429, String::new()), unknown),
        (Script::Fixed(204, String::new()), unknown),
        (Script::Fixed(301, value.to_owned()), redirect),
        (Script::Fixed(307, String::new()), redirect),
        (Script::Fixed(200, String::new()), other),
        (Script::Fixed(200, "<html>".to_owned()), other),
        (Script::Fixed(200, "{}".to_owned()), other),
        (Script::Fixed(200, r#"{"value":null}"#.to_owned()), other),
        (Script::Fixed(200, r#"{"value":5}"#.to_owned()), other),
        (
            Script::Fixed(200, r#"{"value":"value-of-C"}"#.to_owned()),
            other,
        ),
        (
            Script::Fixed(200, r#"{"value":"value-of-c2"}"#.to_owned()),
            other,
        ),
        (Script::Fixed(200, r#"{"value":""}"#.to_owned()), other),
        (Script::Long, "it answered at too great a length"),
    ] {
        world.urls.script(&worker.url, script.clone());
        let pair = json!({"challenge": "c", "challengeValue": "value-of-c"});
        let answer = worker.try_register(&node, pair).await;
        let said = format!("advertiseUrl did not prove to be the worker's own: {why}");
        answer.refuses(403, &said);
        assert_eq!(world.urls.asked().len(), 1, "{script:?}: asked once");
    }
    world
        .urls
        .script(&worker.url, Script::Fixed(200, value.to_owned()));
    let pair = json!({"challenge": "c", "challengeValue": "value-of-c"});
    worker.register_with(&node, pair).await;
}

#[tokio::test(start_paused = true)]
async fn all_of_it_takes_five_seconds_at_most() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.url = "http://worker.example:8000".to_owned();
    world.names.set("worker.example", &["10.0.0.7"]);

    let slow = |seconds| {
        let answers = Box::new(Script::Worker(worker.secret.clone()));
        Script::Slow(Duration::from_secs(seconds), answers)
    };
    for (lookup, answer, held) in [
        (0, 4, true),
        (0, 6, false),
        (3, 1, true),
        (3, 4, false),
        (9, 0, false),
    ] {
        world
            .names
            .take_time(&world.domain, Duration::from_secs(lookup));
        world.urls.script(&worker.url, slow(answer));
        let before = world.domain.monotonic();
        let answer = worker.try_register(&node, json!({})).await;
        let took = world.domain.monotonic() - before;
        if held {
            answer.ok();
        } else {
            assert_eq!(answer.status, 503, "{}", answer.text);
            assert_eq!(took, Duration::from_secs(5));
        }
    }
}
