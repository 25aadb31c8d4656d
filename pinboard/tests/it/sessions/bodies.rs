//! What is said of bodies that are malformed (P2).

use serde_json::{Value, json};

use super::rig::{Node, WORKER, Worker, World, merged};

async fn register(node: &Node, worker: &Worker, more: Value) -> String {
    worker.try_register(node, more).await.malformed()
}

#[tokio::test(start_paused = true)]
async fn a_malformed_registration_says_what_was_expected_where() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for (more, said) in [
        (json!({"clientId": null}), "missing field `clientId`"),
        (json!({"clientId": 5}), "clientId: expected a string"),
        (
            json!({"clientId": ""}),
            "clientId: expected 1 to 256 bytes of text without control characters",
        ),
        (
            json!({"clientId": "a\nb"}),
            "clientId: expected 1 to 256 bytes of text without control characters",
        ),
        (
            json!({"clientId": "c".repeat(257)}),
            "clientId: expected 1 to 256 bytes of text without control characters",
        ),
        (
            json!({"secret": ""}),
            "secret: expected 1 to 1024 visible ASCII characters",
        ),
        (
            json!({"secret": "a\r\nx: y"}),
            "secret: expected 1 to 1024 visible ASCII characters",
        ),
        (json!({"headroom": -1}), "headroom: expected u64"),
        (json!({"headroom": 1.5}), "headroom: expected u64"),
        (json!({"draining": "no"}), "draining: expected a boolean"),
        (
            json!({"challenge": "c".repeat(1025)}),
            "challenge: expected 1 to 1024 bytes of text without control characters",
        ),
        (
            json!({"challengeValue": ""}),
            "challengeValue: expected 1 to 1024 bytes of text without control characters",
        ),
        (
            json!({"prevSessionId": ""}),
            "prevSessionId: expected 1 to 128 bytes of text without control characters",
        ),
        (
            json!({"advertiseUrl": "ftp://10.0.0.1"}),
            "advertiseUrl must be an http or https URL",
        ),
        (
            json!({"advertiseUrl": "http://user:pass@10.0.0.1"}),
            "advertiseUrl must not have a user or a password in it",
        ),
        (
            json!({"namespaces": []}),
            "namespaces: expected 1 to 1000 namespaces",
        ),
        (
            json!({"namespaces": vec!["/rooms"; 1001]}),
            "namespaces: expected 1 to 1000 namespaces",
        ),
        (
            json!({"namespaces": ["/rooms", "/rooms"]}),
            "namespaces[1]: expected each namespace once",
        ),
        (
            json!({"namespaces": ["rooms"]}),
            "namespaces[0]: namespace must be '/' followed by a single path segment",
        ),
        (
            json!({"namespaces": ["/rooms", 5]}),
            "namespaces[1]: expected a string",
        ),
        (
            json!({"namespaces": [format!("/{}", "n".repeat(256))]}),
            "namespaces[0]: namespace must be at most 256 bytes",
        ),
        (
            json!({"instances": {"/rooms": ["blue", "a b"]}}),
            "instances./rooms[1]: id must contain only [A-Za-z0-9._~-]",
        ),
        (
            json!({"instances": {"/rooms": [".."]}}),
            "instances./rooms[0]: id must not be . or ..",
        ),
        (
            json!({"instances": {"/chat": ["blue"]}}),
            "instances: expected only namespaces that are among the worker's own",
        ),
        (json!({"instances": ["blue"]}), "instances: expected a map"),
    ] {
        assert_eq!(register(&node, &worker, more.clone()).await, said, "{more}");
    }
    assert!(
        world.urls.asked().is_empty(),
        "nothing was asked for any of them"
    );
}

// P5.1: what the control plane answers itself cannot be served by a worker.
#[tokio::test(start_paused = true)]
async fn the_control_planes_own_paths_are_no_namespaces() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    for reserved in ["/registry", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(
            register(&node, &worker, json!({"namespaces": [reserved]})).await,
            "namespaces[0]: namespace is reserved for the control plane's own routes"
        );
    }
    // Ids and namespaces that try to leave their key.
    for odd in [
        "/{x}", "/a b", "/a\u{0}", "/a/b", "/../x", "/é", "/%2e", "/_pinned", "/:x", "/*",
    ] {
        let said = register(&node, &worker, json!({"namespaces": [odd]})).await;
        assert!(
            said.starts_with("namespaces[0]: namespace must"),
            "{odd}: {said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_an_object_is_refused() {
    let world = World::new().await;
    let node = world.node();
    for body in ["", "null", "5", "\"text\"", "[]", "[1,2,3,4,5,6,7,8]"] {
        for path in ["register", "heartbeat", "deregister"] {
            let path = format!("/registry/{path}");
            let said = node.post_text(&path, WORKER, body).await.malformed();
            assert_eq!(said, "expected a JSON object", "{path} {body}");
        }
    }
    for body in ["{", "{}x", "{\"a\":}", "{\"clientId\": \"\u{1}\"}"] {
        let said = node
            .post_text("/registry/register", WORKER, body)
            .await
            .malformed();
        assert!(!said.is_empty());
    }
    // Deep nesting is refused, not followed.
    for member in ["instances", "unknown"] {
        let deep = format!("{{\"{member}\":{}", "[".repeat(100_000));
        node.post_text("/registry/register", WORKER, &deep)
            .await
            .malformed();
    }
}

// P1.5
#[tokio::test(start_paused = true)]
async fn no_refusal_shows_a_secret() {
    let world = World::new().await;
    let node = world.node();
    let worker = Worker::new(&world, 1);
    let secret = "271828182845904523536";
    for more in [
        json!({"secret": 271_828_182_845_904_523_u64}),
        json!({"secret": [secret]}),
        json!({"secret": {"value": secret}}),
        json!({"secret": format!("{secret}\n")}),
        json!({"challengeValue": {"value": secret}}),
        json!({"headroom": secret}),
        json!({"takeover": secret}),
        json!({"advertiseUrl": format!("http://{secret}:x@10.0.0.1")}),
        json!({"advertiseUrl": format!("http://10.0.0.1/?{secret}")}),
        json!({"instances": {"/elsewhere": [secret]}}),
    ] {
        let body = merged(worker.registration(), more.clone()).to_string();
        let answer = node.post_text("/registry/register", WORKER, &body).await;
        answer.malformed();
        assert!(!answer.text.contains("271828"), "{more}: {}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_heartbeat_says_what_was_expected_where() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let both = "challenge: expected challenge and challengeValue together, or neither";
    let left = "drainDeadline: expected seconds from 0 to 3153600000";
    for (more, said) in [
        (json!({"sessionId": null}), "missing field `sessionId`"),
        (json!({"challenge": "c"}), both),
        (json!({"challengeValue": "v"}), both),
        (json!({"acks": "1"}), "acks: expected a sequence"),
        (json!({"acks": [1]}), "acks[0]: expected a string"),
        (
            json!({"acks": [""]}),
            "acks: expected 1 to 1024 bytes of text without control characters",
        ),
        // Deadlines of any kind.
        (json!({"drainDeadline": -1}), left),
        (json!({"drainDeadline": 1e300}), left),
        (
            json!({"drainDeadline": true}),
            "drainDeadline: expected f64",
        ),
        (json!({"drainDeadline": "5"}), "drainDeadline: expected f64"),
    ] {
        let body = merged(super::rig::quiet_beat(&session), more.clone());
        let answer = node.post("/registry/heartbeat", WORKER, &body).await;
        assert_eq!(answer.malformed(), said, "{more}");
    }
    for number in ["NaN", "Infinity", "-Infinity", "1e999"] {
        let body = format!(
            r#"{{"sessionId":"{session}","headroom":1,"draining":false,"drainDeadline":{number}}}"#
        );
        let answer = node.post_text("/registry/heartbeat", WORKER, &body).await;
        assert!(
            answer.malformed().starts_with("malformed JSON: "),
            "{number}"
        );
    }
}
