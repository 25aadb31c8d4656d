//! What commands ask, and what they print.

use std::future::pending;
use std::time::Duration;

use http::Method;
use pinned_domain::Domain;
use serde_json::{Value, json};

use super::scripted::Answer::{Hangs, Redirects, Refuses, Says};
use super::scripted::{answered, done};

const WORKERS: &str = r#"{"workers": [
    {"clientId": "c-1", "advertiseUrl": "http://10.0.0.1:8000", "sessionId": "s", "hostname": "*", "env": "*",
     "namespaces": ["/rooms", "/mail"], "headroom": 512, "draining": false, "registeredAt": 0, "lastHeartbeatAt": 0},
    {"clientId": "evil\u001b[2J", "advertiseUrl": "http://10.0.0.2:8000", "hostname": "*", "env": "*",
     "namespaces": ["/rooms"], "headroom": 64, "draining": true, "drainDeadline": 12.5, "reachable": false}]}"#;

// P1.2
#[tokio::test]
async fn workers_are_a_table() {
    let done = answered(&["workers"], Says(200, WORKERS)).await;
    done.outcome.expect("a table");
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", done.out);
    for (line, words) in [
        (
            lines[0],
            &[
                "CLIENT ID",
                "STATE",
                "NAMESPACES",
                "HEADROOM",
                "HEARTBEAT",
                "URL",
            ][..],
        ),
        (
            lines[1],
            &[
                "c-1",
                "ready",
                "/rooms, /mail",
                "512 MiB",
                "http://10.0.0.1:8000",
            ],
        ),
        (lines[2], &["draining, 12s left, unreachable", "64 MiB"]),
    ] {
        for word in words {
            assert!(line.contains(word), "{word} in {line}");
        }
    }
    // In single mode these say nothing.
    assert!(!done.out.contains("HOSTNAME"), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "{}", done.out);
    assert_eq!(
        done.asked[0].url.as_str(),
        "http://127.0.0.1:8080/registry/workers"
    );

    let none = answered(&["workers"], Says(200, r#"{"workers": []}"#)).await;
    assert_eq!(none.out, "no workers\n");
}

// P1.2
#[tokio::test]
async fn json_is_what_the_server_answered() {
    let done = answered(&["workers", "--json"], Says(200, WORKERS)).await;
    let printed: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(
        printed,
        serde_json::from_str::<Value>(WORKERS).expect("JSON")
    );
    // What a terminal would obey stays an escape.
    assert!(!done.out.contains('\x1b'), "{}", done.out);
}

// P1.2
#[tokio::test]
async fn stats_show_workers_and_what_lives_in_them() {
    const STATS: &str = r#"{"workers": [
        {"clientId": "c-1", "advertiseUrl": "http://10.0.0.1:8000", "draining": false, "leaseFlaps": 1, "reregistrations": 0,
         "namespaces": {"/rooms": {"activations": 5, "evictions": 3}, "/mail": {"activations": 2, "evictions": 0}},
         "instances": [{"namespace": "/rooms", "id": "blue", "connections": 2, "tasks": 1, "idleMs": 1500, "activatedAt": 0}],
         "process": {"uptimeMs": 3600000, "rssBytes": 1073741824, "cpuPercent": 12.4}},
        {"clientId": "c-2", "advertiseUrl": "http://10.0.0.2:8000", "error": "no answer within 5s"}]}"#;
    let done = answered(&["stats"], Says(200, STATS)).await;
    done.outcome.expect("tables");
    let tables: Vec<&str> = done.out.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{}", done.out);
    for word in [
        "ACTIVATIONS",
        "7",
        "3",
        "1h",
        "1.0 GiB",
        "12%",
        "no answer: no answer within 5s",
    ] {
        assert!(tables[0].contains(word), "{word} in {}", tables[0]);
    }
    for word in ["blue", "/rooms", "1s", "c-1"] {
        assert!(tables[1].contains(word), "{word} in {}", tables[1]);
    }
}

// P1.2
#[tokio::test]
async fn health_and_overview_are_facts() {
    let answer = r#"{"connections": {"now": 3, "total": 10}, "quarantine": {"active": false}}"#;
    for command in ["health", "overview"] {
        let done = answered(&[command], Says(200, answer)).await;
        assert!(done.asked[0].url.path().ends_with(command));
        assert!(done.out.contains("  now        3\n"), "{}", done.out);
        assert!(done.out.contains("  active     no\n"), "{}", done.out);
    }
}

// P3.4, P3.5
#[tokio::test]
async fn orders_are_sent_as_the_registry_takes_them() {
    for (line, path, body, answer, said) in [
        (
            &["drain", "c-1", "--deadline", "30"][..],
            "/registry/drain",
            json!({"clientId": "c-1", "deadline": 30}),
            r#"{"draining": true, "drainDeadline": 30.0}"#,
            "draining c-1: it must be empty within 30s\n",
        ),
        (
            &["drain", "c-1", "--deadline", "1"],
            "/registry/drain",
            json!({"clientId": "c-1", "deadline": 1}),
            r#"{"draining": true, "drainDeadline": 15.0}"#,
            "draining c-1: it must be empty within 15s (one lease time, the least there is)\n",
        ),
        (
            &["drain", "c-1"],
            "/registry/drain",
            json!({"clientId": "c-1", "deadline": null}),
            "{}",
            "cordoned c-1",
        ),
        (
            &["undrain", "c-1"],
            "/registry/undrain",
            json!({"clientId": "c-1"}),
            "{}",
            "c-1 takes new ids again",
        ),
        (
            &["wind-down", "rooms", "blue", "--deadline", "1.5"],
            "/registry/wind_down",
            json!({"namespace": "/rooms", "id": "blue", "deadline": 1.5}),
            r#"{"queued": true}"#,
            "told the holder of /rooms/blue",
        ),
        (
            &["wind-down", "/rooms", "blue"],
            "/registry/wind_down",
            json!({"namespace": "/rooms", "id": "blue", "deadline": 0}),
            r#"{"queued": false}"#,
            "nobody holds /rooms/blue",
        ),
        (
            &["wind-down", "/rooms", "--revoke", "--env", "staging"],
            "/registry/wind_down",
            json!({"namespace": "/rooms", "deadline": null, "env": "staging"}),
            r#"{"queued": 3}"#,
            "told the holders of 3 ids of /rooms: it may stay",
        ),
    ] {
        let done = answered(line, Says(200, answer)).await;
        done.outcome.expect("taken");
        let asked = &done.asked[0];
        assert_eq!((&asked.method, asked.url.path()), (&Method::POST, path));
        let sent: Value = serde_json::from_slice(&asked.body).expect("JSON");
        assert_eq!(sent, body, "{line:?}");
        assert!(done.out.starts_with(said), "{}", done.out);
    }
}

// P1.2
#[tokio::test]
async fn the_token_goes_along_and_the_path_of_the_url_stays() {
    let line = [
        "workers",
        "--url",
        "https://h:1/board/?x=1#y",
        "--token",
        " s3cret ",
    ];
    let done = answered(&line, Says(200, "{}")).await;
    let asked = &done.asked[0];
    assert_eq!(asked.url.as_str(), "https://h:1/board/registry/workers");
    let authorization = &asked.headers["authorization"];
    assert_eq!(authorization, "Bearer s3cret");
    assert!(authorization.is_sensitive());
    assert_eq!(asked.addresses, None);

    let line = ["workers", "--token", "a\nb"];
    let done = super::scripted::done(&line, [], pending()).await;
    assert!(done.error().contains("--token"), "{}", done.error());
    assert!(!done.error().contains("a\nb"), "{}", done.error());
}

// P1.2
#[tokio::test]
async fn a_failure_says_what_to_do() {
    for (line, answer, words) in [
        (
            &["workers"][..],
            Refuses,
            &[
                "cannot reach http://127.0.0.1:8080",
                "connection refused",
                "PINBOARD_URL",
            ][..],
        ),
        (
            &["workers"],
            Says(401, r#"{"error": "unauthorized"}"#),
            &[
                "unauthorized",
                "set --token or PINBOARD_OPERATOR_TOKEN",
                "pinboard:operator",
            ],
        ),
        (
            &["workers", "--token", "t"],
            Says(401, r#"{"error": "unauthorized"}"#),
            &["unauthorized", "does not know the token"],
        ),
        (
            &["workers", "--token", "t"],
            Says(403, r#"{"error": "forbidden"}"#),
            &["forbidden", "scope pinboard:operator"],
        ),
        (
            &["drain", "c-1"],
            Says(403, r#"{"error": "forbidden"}"#),
            &[
                "forbidden",
                "no worker with this client id has ever registered",
            ],
        ),
        (
            &["wind-down", "rooms", "--env", "x"],
            Says(400, r#"{"error": "env requires hostname-aware mode"}"#),
            &["env requires hostname-aware mode"],
        ),
        (
            &["workers"],
            Says(404, "<html>"),
            &["does not answer as a pinboard does", "404"],
        ),
        (
            &["workers"],
            Says(200, "<html>"),
            &["does not answer as a pinboard does", "not JSON"],
        ),
        (
            &["workers"],
            Redirects("https://login/"),
            &["redirects to https://login/"],
        ),
        (
            &["workers"],
            Says(503, "{\"error\": \"store\\u001b[2J away\"}"),
            &["store\u{fffd}[2J away"],
        ),
    ] {
        let done = answered(line, answer).await;
        for word in words {
            assert!(done.error().contains(word), "{word} in {}", done.error());
        }
        assert_eq!(done.out, "");
    }
}

// P1.2
#[tokio::test]
async fn events_are_read_page_by_page_to_the_end() {
    let pages = [
        Says(
            200,
            r#"{"events": [{"seq": 4, "at": 0, "kind": "register", "clientId": "c-1"}], "next": 4}"#,
        ),
        Says(200, r#"{"events": [], "next": 4}"#),
    ];
    let done = done(&["events", "--after", "3"], pages, pending()).await;
    done.outcome.expect("events");
    let asked: Vec<_> = done.asked.iter().map(|fetch| fetch.url.query()).collect();
    assert_eq!(asked, [Some("after=3"), Some("after=4")]);
    assert_eq!(
        done.out,
        "1970-01-01T00:00:00.000Z       4  register      client c-1\n"
    );
}

// P1.2
#[tokio::test(start_paused = true)]
async fn events_are_followed_through_a_restart_until_interrupted() {
    let pages = [
        Says(
            200,
            r#"{"events": [{"seq": 4, "at": 0, "kind": "placed"}], "next": 4}"#,
        ),
        Refuses,
        Says(503, r#"{"error": "starting"}"#),
        // The store was wiped: its numbers start over.
        Says(200, r#"{"events": [], "next": 0}"#),
        Says(
            200,
            r#"{"events": [{"seq": 1, "at": 0, "kind": "drain"}], "next": 1}"#,
        ),
        Hangs,
    ];
    let interrupt = Domain::real().sleep(Duration::from_secs(60));
    let done = done(&["events", "--follow", "--json"], pages, interrupt).await;
    done.outcome.expect("the end of it");
    let seen: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("one object a line"))
        .collect();
    assert_eq!(
        seen.iter().map(|event| &event["seq"]).collect::<Vec<_>>(),
        [4, 1]
    );
    let asked: Vec<_> = done
        .asked
        .iter()
        .filter_map(|fetch| fetch.url.query())
        .collect();
    assert_eq!(
        asked,
        [
            "after=0", "after=4", "after=4", "after=4", "after=0", "after=1"
        ]
    );
}

// P1.2
#[tokio::test]
async fn a_refusal_ends_following() {
    let refusal = Says(401, r#"{"error": "unauthorized"}"#);
    let done = answered(&["events", "--follow"], refusal).await;
    assert!(done.error().contains("unauthorized"));
}
