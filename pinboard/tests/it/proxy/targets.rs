//! Which instance a target names, and what of it the worker gets (P5.1).

use pinboard::proxy::{Target, TargetError};

use super::rig::{Rig, get, says};

#[test]
fn a_target_names_a_namespace_and_an_id() {
    for (raw, ns, id) in [
        ("/rooms/alice", "/rooms", "alice"),
        ("/rooms/alice/", "/rooms", "alice"),
        ("/rooms/alice?x=/y", "/rooms", "alice"),
        ("/rooms/alice/a/../b", "/rooms", "alice"),
        ("/rooms/%61lice//x", "/rooms", "alice"),
        ("/rooms/%7E.-_/%2e", "/rooms", "~.-_"),
        ("/a:b@c/...", "/a:b@c", "..."),
    ] {
        let target = Target::parse(raw).unwrap_or_else(|error| panic!("{raw}: {error}"));
        assert_eq!((target.ns, &*target.id), (ns, id), "{raw}");
    }
}

#[test]
fn what_names_no_instance_is_found_nowhere() {
    for raw in [
        "",
        "*",
        "/",
        "/rooms",
        "/rooms?/alice",
        "rooms/alice",
        "//rooms/alice",
        "/ro%6Fms/alice",
        "/rooms%2Falice/x",
        "/_pinned/stats",
        "/./alice",
        "/../alice",
        "/:ns/alice",
        "/*ns/alice",
        "/ro{oms/alice",
        // An encoded slash is no part of an id.
        "/rooms/a%2Fb",
        "/rooms/a%2fb/x",
        "/rooms/%2F",
        // Out of the id, if somebody resolves it.
        "/rooms/alice/..",
        "/rooms/alice/../bob",
        "/rooms/alice/a/../../bob",
        "/rooms/alice/%2e%2E/bob",
        "/rooms/alice/.%2e/.%2e/_pinned/stats",
        "/rooms/alice/..%2f..%2f_pinned/stats",
        "/rooms/alice/..\\bob",
        "/rooms/alice/x%5c..%5c../bob",
    ] {
        assert_eq!(Target::parse(raw), Err(TargetError::NotFound), "{raw}");
    }
}

#[test]
fn an_odd_id_is_told_why() {
    const ALPHABET: &str = "id must contain only [A-Za-z0-9._~-]";
    let long = format!("/rooms/{}", "x".repeat(257));
    for (raw, reason) in [
        ("/rooms/", "id must be non-empty"),
        ("/rooms//x", "id must be non-empty"),
        ("/rooms/?x", "id must be non-empty"),
        (&*long, "id must be at most 256 characters"),
        ("/rooms/.", "id must not be . or .."),
        ("/rooms/..", "id must not be . or .."),
        ("/rooms/%2e%2E/x", "id must not be . or .."),
        ("/rooms/a:b", ALPHABET),
        ("/rooms/%7B0%7D", ALPHABET),
        ("/rooms/{s0}", ALPHABET),
        ("/rooms/a%00", ALPHABET),
        ("/rooms/a%0d%0a", ALPHABET),
        ("/rooms/%C3%A9", ALPHABET),
        ("/rooms/%FF", ALPHABET),
        ("/rooms/%2561lice", ALPHABET),
        ("/rooms/%6", ALPHABET),
        ("/rooms/a;v=1", ALPHABET),
        ("/rooms/a+b", ALPHABET),
    ] {
        assert_eq!(
            Target::parse(raw),
            Err(TargetError::InvalidId(reason)),
            "{raw}"
        );
    }
}

#[tokio::test]
async fn raw_targets_survive_byte_for_byte() {
    // "raw request targets survive byte for byte: `%2F`, `%252F`, `%20`, `+`, `;`, `%C3%A9`, an empty segment, a trailing
    // slash, `?` with an empty query."
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.connect().await;
    let (mut peer, mut is_first) = (None, true);
    for target in [
        "/rooms/alice",
        "/rooms/alice/",
        "/rooms/%61lice/x",
        "/rooms/alice/a%2Fb/%2f",
        "/rooms/alice/%252F",
        "/rooms/alice/%20+;%C3%A9",
        "/rooms/alice//x//",
        "/rooms/alice/x?",
        "/rooms/alice?a=b&c=%2F+%20?/../",
        "/rooms/alice/a/./../b",
        "/rooms/alice/{x}|\"y\"",
    ] {
        client.write(get(target)).await;
        if std::mem::take(&mut is_first) {
            peer = Some(worker.accept().await);
        }
        let peer = peer.as_mut().expect("connected");
        let head = peer.head().await;
        assert_eq!(head.first_line(), format!("GET {target} HTTP/1.1"));
        peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(client.head().await.status(), 204, "{target}");
    }
}

#[tokio::test]
async fn an_absolute_target_is_taken_for_what_it_names() {
    let rig = Rig::new().await;
    let worker = rig.worker_at("a", "/behind/here/").await;
    let mut client = rig
        .send("GET http://other.example:81/rooms/alice/x?y HTTP/1.1\r\nHost: rooms.example\r\n\r\n")
        .await;
    let (_, head) = worker.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(
        head.first_line(),
        "GET /behind/here/rooms/alice/x?y HTTP/1.1"
    );
    assert_eq!(head.header("host"), Some("other.example:81"));
    assert_eq!(client.head().await.status(), 204);
}

#[tokio::test]
async fn every_method_goes_to_the_worker() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for method in ["OPTIONS", "HEAD", "DELETE", "PATCH", "PROPFIND", "X-Y.z"] {
        let mut client = rig
            .send(&format!(
                "{method} /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n"
            ))
            .await;
        let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
        let (_, head) = worker.answer(answer).await;
        assert_eq!(head.first_line(), format!("{method} /rooms/alice HTTP/1.1"));
        assert_eq!(client.head().await.status(), 204);
    }
}

#[tokio::test]
async fn what_is_not_there_is_answered_without_a_worker() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for (target, status, error) in [
        ("/", 404, "not found"),
        ("/favicon.ico", 404, "not found"),
        ("/rooms/alice/../bob", 404, "not found"),
        ("/nobody/alice", 404, "no worker serves this namespace"),
        ("/rooms/a$b", 400, "id must contain only [A-Za-z0-9._~-]"),
        ("/rooms//x", 400, "id must be non-empty"),
    ] {
        let (head, body) = rig.get(target).await.response().await;
        assert_eq!(head.status(), status, "{target}");
        assert_eq!(head.header("content-type"), Some("application/json"));
        assert!(says(&body, error), "{target}: {body}");
    }
    let (head, _) = rig
        .send("CONNECT rooms:443 HTTP/1.1\r\nHost: rooms:443\r\n\r\n")
        .await
        .response()
        .await;
    assert_eq!(head.status(), 405);
    let (head, _) = rig
        .send("OPTIONS * HTTP/1.1\r\nHost: rooms\r\n\r\n")
        .await
        .response()
        .await;
    assert_eq!(head.status(), 404);
    assert!(worker.is_left_alone());
}

#[tokio::test]
async fn reserved_paths_are_the_routers() {
    let rig = Rig::new().await;
    for path in [
        "/registry/workers",
        "/registry",
        "/healthz",
        "/metrics?x",
        "/healthz/alice",
    ] {
        let (head, body) = rig.get(path).await.response().await;
        assert_eq!(
            (head.status(), &*body),
            (200, &*format!("routed {path} for true"))
        );
    }
    let (head, _) = rig.get("/registryx/a").await.response().await;
    assert_eq!(head.status(), 404);
}
