//! Whom a request is attested as: nobody, an account (P6, P7), or an instance of a worker (P5.8).

use pinboard::store::EndMode;
use pinned_wire::attestation::Caller;

use super::rig::{Head, Plan, Rig, Worker, says};

const DONE: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

const PASSPORT: &str = r#"{
    "providers": [{"type": "staticToken", "id": "keys", "keys": [
        {"name": "alice", "token": "alice-token", "scopes": ["chat"], "claims": {"team": 7}},
        {"name": "bob", "token": "bob-token", "scopes": [], "claims": {}}
    ]}],
    "namespaces": {"/locked": {"allow": "scope:chat"}}
}"#;

async fn passport() -> Rig {
    let plan = Plan {
        passport: Some(PASSPORT),
        ..Plan::default()
    };
    Rig::planned(plan).await
}

/// The head that the worker gets of a request to `target` with these lines.
async fn forwarded(rig: &Rig, worker: &Worker, target: &str, lines: &str) -> Head {
    let mut client = rig
        .send(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
        .await;
    let (_, head) = worker.answer(DONE).await;
    assert_eq!(client.head().await.status(), 204);
    head
}

/// The answer to such a request that no worker gets.
async fn refused(rig: &Rig, worker: &Worker, target: &str, lines: &str) -> (u16, String) {
    let mut client = rig
        .send(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
        .await;
    let (head, body) = client.response().await;
    assert!(worker.is_left_alone());
    (head.status(), body)
}

#[tokio::test]
async fn nobody_in_particular_is_attested_as_such() {
    // P5.6, P6.1, P6.2
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let head = forwarded(
        &rig,
        &worker,
        "/rooms/alice",
        "pinboard-proxy-secret: guess\r\n",
    )
    .await;
    assert_eq!(worker.caller(&head), Some(Caller::Anonymous));
    assert!(head.header("pinboard-epoch").is_some());
    assert_eq!(head.header("pinboard-proxy-secret"), None);
    assert!(!head.text.contains(&worker.secret));
    // One token serves for a while.
    let again = forwarded(&rig, &worker, "/rooms/alice", "").await;
    let token = |head: &Head| head.header("pinboard-attestation").map(str::to_owned);
    let (one, other) = (token(&head), token(&again));
    assert!(one == other || worker.caller(&again) == Some(Caller::Anonymous));
}

#[tokio::test]
async fn an_account_is_vouched_for_and_its_token_stays_here() {
    // P6.1, P7.5
    let rig = passport().await;
    let worker = rig.worker("a").await;
    for target in ["/rooms/alice", "/locked/alice"] {
        let head = forwarded(
            &rig,
            &worker,
            target,
            "Authorization: Bearer alice-token\r\n",
        )
        .await;
        let Some(Caller::Account(account)) = worker.caller(&head) else {
            panic!("an account: {}", head.text);
        };
        assert_eq!(account.sub, "alice");
        assert!(account.scopes.contains("chat"));
        assert_eq!(account.claims["team"], 7);
        assert_eq!(head.header("authorization"), None);
        assert!(!head.text.contains("alice-token"));
    }
    // The scheme of an application is its own affair where anyone may come.
    let head = forwarded(
        &rig,
        &worker,
        "/rooms/alice",
        "Authorization: Bearer else\r\n",
    )
    .await;
    assert_eq!(worker.caller(&head), Some(Caller::Anonymous));
    assert_eq!(head.header("authorization"), Some("Bearer else"));
}

#[tokio::test]
async fn a_namespace_that_wants_somebody_gets_nobody_else() {
    // P7.4
    let rig = passport().await;
    let worker = rig.worker("a").await;
    for lines in [
        "",
        "Authorization: Bearer else\r\n",
        "pinboard-from: /rooms/alice\r\n",
    ] {
        let (status, body) = refused(&rig, &worker, "/locked/alice", lines).await;
        assert_eq!(status, 401, "{lines}");
        assert!(says(&body, "unauthorized"), "{body}");
    }
    let bob = "Authorization: Bearer bob-token\r\n";
    let (status, body) = refused(&rig, &worker, "/locked/alice", bob).await;
    assert_eq!(status, 403);
    assert!(says(&body, "forbidden"), "{body}");
}

#[tokio::test]
async fn the_token_of_a_browsers_websocket_is_taken_out_of_its_subprotocols() {
    // P7.4
    let rig = passport().await;
    let worker = rig.worker("a").await;
    let request = |protocols: &str| {
        format!(
            "GET /locked/alice HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Protocol: {protocols}\r\n\r\n"
        )
    };
    let switch = |more: &str| {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{more}\r\n"
        )
    };
    let mut client = rig
        .send(&request("chat, pinboard.bearer.alice-token,json"))
        .await;
    let (_, head) = worker
        .answer(&switch("Sec-WebSocket-Protocol: json\r\n"))
        .await;
    assert!(
        matches!(worker.caller(&head), Some(Caller::Account(account)) if account.sub == "alice")
    );
    assert_eq!(head.header("sec-websocket-protocol"), Some("chat, json"));
    assert!(!head.text.contains("alice-token"));
    assert_eq!(
        client.head().await.header("sec-websocket-protocol"),
        Some("json")
    );

    // A browser that offers nothing else needs it chosen.
    let mut client = rig.send(&request("pinboard.bearer.alice-token")).await;
    let (_, head) = worker.answer(&switch("")).await;
    assert_eq!(head.header("sec-websocket-protocol"), None);
    let head = client.head().await;
    assert_eq!(head.status(), 101);
    assert_eq!(
        head.header("sec-websocket-protocol"),
        Some("pinboard.bearer.alice-token")
    );
    // One that does chooses nothing.
    let mut client = rig
        .send(&request("chat, pinboard.bearer.alice-token"))
        .await;
    worker.answer(&switch("")).await;
    assert_eq!(client.head().await.header("sec-websocket-protocol"), None);
}

// --- Calls between instances ---

fn call(session: &str, secret: &str, from: &str, depth: &str) -> String {
    format!(
        "pinboard-from: {from}\r\npinboard-session: {session}\r\npinboard-session-secret: {secret}\r\n\
         pinboard-subrequest-depth: {depth}\r\n"
    )
}

#[tokio::test]
async fn an_instance_that_calls_is_named_to_the_one_it_calls() {
    // P5.8, W14.6
    let rig = passport().await;
    let worker = rig.worker("a").await;
    rig.place("caller").await;
    let session = worker.session.as_str();
    for (target, depth) in [
        ("/rooms/alice", 1),
        ("/rooms/caller", 50),
        ("/locked/alice", 0),
    ] {
        let lines = call(session, &worker.secret, "/rooms/caller", &depth.to_string());
        let head = forwarded(&rig, &worker, target, &lines).await;
        let caller = Caller::Instance {
            ns: "/rooms".into(),
            id: "caller".into(),
            depth,
        };
        assert_eq!(worker.caller(&head), Some(caller));
        for own in [
            "pinboard-from",
            "pinboard-session",
            "pinboard-session-secret",
            "pinboard-subrequest-depth",
            "pinboard-chain",
        ] {
            assert_eq!(head.header(own), None);
        }
        assert!(!head.text.contains(&worker.secret));
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_what_it_says_is_refused() {
    // P5.8, W14.8
    let rig = passport().await;
    let worker = rig.worker("a").await;
    rig.place("caller").await;
    let (session, secret) = (worker.session.as_str(), &*worker.secret);
    let from = "/rooms/caller";
    for (lines, error) in [
        (call(session, "guess", from, "1"), "invalid session secret"),
        (call(session, "", from, "1"), "invalid session secret"),
        (
            call("session-b", secret, from, "1"),
            "invalid session secret",
        ),
        (
            format!("pinboard-session: {session}\r\n"),
            "invalid session secret",
        ),
        (
            format!("pinboard-session-secret: {secret}\r\n"),
            "invalid session secret",
        ),
        (
            call(session, secret, from, "1") + "pinboard-session: session-b\r\n",
            "invalid session secret",
        ),
        (
            call(session, secret, "/rooms/eve", "1"),
            "caller placement mismatch",
        ),
        (
            call(session, secret, "/locked/caller", "1"),
            "caller placement mismatch",
        ),
        (
            call(session, secret, "rooms/caller", "1"),
            "caller placement mismatch",
        ),
        (
            call(session, secret, "/rooms/a/b", "1"),
            "caller placement mismatch",
        ),
        (
            call(session, secret, "/rooms/{s0}", "1"),
            "caller placement mismatch",
        ),
        (call(session, secret, "", "1"), "caller placement mismatch"),
        (
            call(session, secret, from, "51"),
            "calls between instances may be at most 50 deep",
        ),
        (
            call(session, secret, from, "99999999999999999999"),
            "calls between instances may be at most 50 deep",
        ),
        (
            call(session, secret, from, "-1"),
            "malformed subrequest depth",
        ),
        (
            call(session, secret, from, ""),
            "malformed subrequest depth",
        ),
        (
            call(session, secret, from, "1e1"),
            "malformed subrequest depth",
        ),
    ] {
        let (status, body) = refused(&rig, &worker, "/rooms/alice", &lines).await;
        assert_eq!(status, 403, "{lines}");
        assert!(says(&body, error), "{lines}: {body}");
    }
    assert_eq!(
        rig.holder("eve").await,
        None,
        "nobody was placed by being named"
    );
}

#[tokio::test]
async fn the_chain_of_a_call_is_vouched_for_and_that_of_a_stranger_is_dropped() {
    // P5.5, P5.8; W14.3: "the chain travels in the attestation as a claim that others ignore"
    let rig = passport().await;
    let worker = rig.worker("a").await;
    rig.place("caller").await;
    let lines = call(
        worker.session.as_str(),
        &worker.secret,
        "/rooms/caller",
        "2",
    );
    let chain = "pinboard-chain: /rooms/first exclusive > /rooms/caller shared 0f.1\r\n";
    let head = forwarded(&rig, &worker, "/rooms/alice", &(lines.clone() + chain)).await;
    let claims = worker.claims(&head).expect("attested");
    assert_eq!(
        claims.chain.as_deref(),
        Some(
            &[
                "/rooms/first exclusive".to_owned(),
                "/rooms/caller shared 0f.1".to_owned()
            ][..]
        )
    );
    assert_eq!(claims.caller.as_deref(), Some("/rooms/caller"));
    assert_eq!(head.header("pinboard-chain"), None);
    // A worker of another edition tells none.
    let head = forwarded(&rig, &worker, "/rooms/alice", &lines).await;
    assert_eq!(worker.claims(&head).expect("attested").chain, None);
    // From outside it counts for nothing, and the token that is the same for everybody stays so.
    for who in ["", "Authorization: Bearer alice-token\r\n"] {
        let head = forwarded(&rig, &worker, "/rooms/alice", &(who.to_owned() + chain)).await;
        assert_eq!(worker.claims(&head).expect("attested").chain, None);
        assert_eq!(head.header("pinboard-chain"), None);
    }
}

#[tokio::test]
async fn a_chain_that_cannot_be_one_is_refused() {
    // P5.8
    let rig = passport().await;
    let worker = rig.worker("a").await;
    rig.place("caller").await;
    let lines = call(
        worker.session.as_str(),
        &worker.secret,
        "/rooms/caller",
        "2",
    );
    let long = vec!["/rooms/x shared"; 51].join(" > ");
    let wide = format!("/{}/x shared", "n".repeat(17 << 10));
    for chain in [
        "",
        "/rooms/x",
        "/rooms/x mine",
        "/rooms/x shared, /rooms/y shared",
        "/rooms/x shared\r\npinboard-chain: /rooms/y shared",
        &long,
        &wide,
    ] {
        let lines = format!("{lines}pinboard-chain: {chain}\r\n");
        let (status, body) = refused(&rig, &worker, "/rooms/alice", &lines).await;
        assert_eq!(status, 403, "{chain}");
        assert!(says(&body, "malformed call chain"), "{chain}: {body}");
    }
}

#[tokio::test]
async fn a_session_that_has_ended_calls_nobody() {
    // P5.8: "The session must be alive"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    rig.place("caller").await;
    let other = rig.worker("b").await;
    rig.end(&worker, EndMode::Now).await;
    let lines = call(
        worker.session.as_str(),
        &worker.secret,
        "/rooms/caller",
        "1",
    );
    let (status, body) = refused(&rig, &other, "/rooms/alice", &lines).await;
    assert_eq!(status, 403);
    assert!(says(&body, "invalid session secret"), "{body}");
}
