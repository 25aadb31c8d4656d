//! What a worker's claims let it register (P2.2).

use pinboard::store::SessionId;
use serde_json::json;

use super::rig::{
    STRANGER, Worker, World, address, beat, heartbeat, merged, passport_json, quiet_beat,
    session_of,
};

#[tokio::test(start_paused = true)]
async fn every_namespace_must_be_covered() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for namespaces in [json!(["/other"]), json!(["/rooms", "/other"])] {
        worker
            .try_register(&node, json!({"namespaces": namespaces}))
            .await
            .refuses(403, "forbidden");
    }
    assert!(world.urls.asked().is_empty(), "the URL was not asked");
    worker
        .register_with(&node, json!({"namespaces": ["/rooms", "/chat"]}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_list_admits_nothing() {
    let world = World::new().await;
    for missing in ["namespaces", "allowedBackendHosts"] {
        let mut passport = passport_json();
        let claims = &mut passport["providers"][0]["keys"][0]["claims"]["pinboard"];
        claims.as_object_mut().expect("claims").remove(missing);
        let node = world.node_with(Default::default(), &passport);
        let worker = Worker::new(&world, 1);
        worker
            .try_register(&node, json!({}))
            .await
            .refuses(403, "forbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_of_the_url_must_be_covered() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for url in [
        "http://11.0.0.1:8000",
        "http://127.0.0.1:8000",
        "http://[::1]:8000",
        "http://localhost:8000",
        // Where clouds keep their secrets, in every spelling.
        "http://169.254.169.254/latest/meta-data",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0:8000",
    ] {
        let answer = worker
            .try_register(&node, json!({"advertiseUrl": url}))
            .await;
        if url.contains("localhost") {
            // Not known to these tests.
            answer.refuses(503, "advertiseUrl did not answer: its host is not known");
        } else {
            answer.refuses(403, "forbidden");
        }
    }
    assert!(world.urls.asked().is_empty(), "none of them was asked");
}

#[tokio::test(start_paused = true)]
async fn every_address_of_a_name_must_be_covered() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.url = "http://pod.cluster.local:8000".to_owned();
    worker.answers(&world);

    world
        .names
        .set("pod.cluster.local", &["10.0.0.7", "8.8.8.8"]);
    worker
        .try_register(&node, json!({}))
        .await
        .refuses(403, "forbidden");
    world
        .names
        .set("pod.cluster.local", &["10.0.0.7", "169.254.169.254"]);
    worker
        .try_register(&node, json!({}))
        .await
        .refuses(403, "forbidden");
    assert!(world.urls.asked().is_empty());

    world
        .names
        .set("pod.cluster.local", &["10.0.0.7", "10.0.0.8"]);
    worker.register(&node).await;
    // What was looked at is what is dialled: nobody resolves the name once more.
    let asked = world.urls.asked();
    let expected = [address("10.0.0.7:8000"), address("10.0.0.8:8000")];
    assert_eq!(asked[0].addresses.as_deref(), Some(&expected[..]));
    let view = node.registry.workers.all()[0].view.read().clone();
    assert_eq!(view.record.addresses, expected);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_listed_may_be_anywhere_but_special() {
    let world = World::new().await;
    let node = world.node();
    let mut worker = Worker::new(&world, 1);
    worker.url = "http://worker.example:8000".to_owned();
    worker.answers(&world);
    world.names.set("worker.example", &["8.8.8.8"]);
    worker.register(&node).await;
    world.names.set("worker.example", &["169.254.169.254"]);
    worker
        .try_register(&node, json!({}))
        .await
        .refuses(403, "forbidden");
}

#[tokio::test(start_paused = true)]
async fn a_client_id_is_taken_over_only_by_whoever_covers_it() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let session = worker.register(&node).await;

    let mut thief = Worker::new(&world, 2);
    thief.client_id = worker.client_id.clone();
    let body = merged(thief.registration(), json!({"namespaces": ["/other"]}));
    let answer = node.post("/registry/register", STRANGER, &body).await;
    answer.refuses(403, "forbidden");
    heartbeat(&node, beat(&session)).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_released_and_ended_only_by_whoever_covers_it() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let key = super::rig::room("blue");
    world.place(&key, &session).await;

    for (path, body) in [
        ("/registry/heartbeat", beat(&session)),
        (
            "/registry/release",
            json!([{"sessionId": session, "namespace": "/rooms", "id": "blue"}]),
        ),
        ("/registry/deregister", json!({"sessionId": session})),
    ] {
        let answer = node.post(path, STRANGER, &body).await;
        answer.refuses(403, "forbidden");
    }
    assert_eq!(world.holder(&key).await.as_deref(), Some(&*session));
    heartbeat(&node, quiet_beat(&session)).await.ok();
}

// The claims of a key may be narrowed while its workers run.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_needs_claims_that_cover_the_addresses_as_they_are() {
    let world = World::new().await;
    let session = Worker::new(&world, 1).register(&world.node()).await;
    let mut passport = passport_json();
    passport["providers"][0]["keys"][0]["claims"]["pinboard"]["allowedBackendHosts"] =
        json!(["10.9.0.0/16"]);
    let narrowed = world.node_with(Default::default(), &passport);
    world.urls.asked();
    heartbeat(&narrowed, beat(&session))
        .await
        .refuses(403, "forbidden");
    assert!(world.urls.asked().is_empty());
}

// P2.5
#[tokio::test(start_paused = true)]
async fn the_previous_session_of_another_client_is_not_honoured() {
    let world = World::new().await;
    let node = world.node();
    let (victim, thief) = (Worker::new(&world, 1), Worker::new(&world, 2));
    let victims = victim.register(&node).await;
    let key = super::rig::room("blue");
    world.place(&key, &victims).await;

    let ack = thief
        .register_with(
            &node,
            json!({"prevSessionId": victims, "instances": {"/rooms": ["blue"]}}),
        )
        .await;
    assert_eq!(ack["duplicates"], json!([{"ns": "/rooms", "id": "blue"}]));
    assert_ne!(session_of(&ack), victims);
    assert_eq!(world.holder(&key).await.as_deref(), Some(&*victims));
    let lives = node.registry.workers.get(&SessionId::new(&*victims));
    assert!(lives.is_some());
}
