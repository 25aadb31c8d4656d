//! Which paths name which instance.

use super::*;

#[test]
fn a_namespace_is_one_path_segment() {
    // H1.1
    for namespace in [
        "",
        "pads",
        "/",
        "/a/b",
        "/a/",
        "//",
        "/a b",
        "/a\tb",
        "/a\u{a0}b",
    ] {
        let error = PinnedWorker::builder()
            .host::<Pad>(namespace)
            .build()
            .unwrap_err();
        assert!(
            error.to_string().contains("single path segment"),
            "{namespace:?}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_spellings_of_an_id_reach_one_instance() {
    // H1.2
    let (app, host) = pads().await;
    for path in [
        "/pads/alice/ping",
        "/pads/%61lice/ping",
        "/pads/%61%6C%69%63%65/ping",
    ] {
        app.get(path).send().await.assert_ok("alice");
    }
    assert_eq!((host.len(), host.activations()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn ids_are_case_sensitive() {
    let (app, host) = pads().await;
    app.get("/pads/alice/ping").send().await.assert_ok("alice");
    app.get("/pads/Alice/ping").send().await.assert_ok("Alice");
    assert_eq!(host.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_id_is_told_why() {
    // H1.2, H1.4, H1.5
    const ALPHABET: &str = "id must contain only [A-Za-z0-9._~-]";
    let (app, host) = pads().await;
    let long = "x".repeat(257);
    let cases = [
        ("", "id must be non-empty"),
        (&*long, "id must be at most 256 characters"),
        ("%24", ALPHABET),
        ("a$", ALPHABET),
        ("a+b", ALPHABET),
        ("a%20b", ALPHABET),
        ("a%00", ALPHABET),
        ("%C3%A9", ALPHABET),
        // Decoded once: the rest is a percent sign, which ids do not have.
        ("%2561", ALPHABET),
        // No text at all, and no encoding at all.
        ("%FF", ALPHABET),
        ("%6", ALPHABET),
        // HTTP clients resolve these before they send.
        (".", "id must not be . or .."),
        ("..", "id must not be . or .."),
        ("%2e%2E", "id must not be . or .."),
    ];
    for (id, reason) in cases {
        let reply = app.get(&format!("/pads/{id}/ping")).send().await;
        reply.assert_error(400, reason);
        assert_eq!(reply.json(), serde_json::json!({ "detail": reason }));
        let refused = app.get(&format!("/pads/{id}/chat")).refused_socket().await;
        refused.assert_closed_before_acceptance();
    }
    assert_eq!((host.len(), host.activations()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_character_of_the_alphabet_and_every_length_up_to_256_is_an_id() {
    // H1.4
    let (app, host) = pads().await;
    let longest = "y".repeat(256);
    for id in ["a", "...", ".a", "-", "~", "_wake", "AZaz09._~-", &longest] {
        app.get(&format!("/pads/{id}/ping"))
            .send()
            .await
            .assert_ok(id);
    }
    assert_eq!(host.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn an_encoded_slash_in_an_id_leads_nowhere() {
    // H1.2
    let (app, host) = pads().await;
    for path in [
        "/pads/a%2Fb/ping",
        "/pads/a%2fping",
        "/pads/%2F/ping",
        "/pads/%2Falice/ping",
    ] {
        app.get(path).send().await.assert_error(404, "Not Found");
    }
    // Elsewhere it is a character like any other.
    app.get("/pads/a/items/x%2Fy").send().await.assert_ok("x/y");
    app.get("/pads/a/items/x%252Fy")
        .send()
        .await
        .assert_ok("x%2Fy");
    assert_eq!(host.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_empty_id_reaches_validation_on_every_route() {
    // H1.3
    let (app, _host) = pads().await;
    for path in ["/pads//ping", "/pads//items/x", "/pads//", "/pads/"] {
        app.get(path)
            .send()
            .await
            .assert_error(400, "id must be non-empty");
    }
    assert_eq!(app.get("/pads").send().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn the_typed_handle_takes_ids_as_they_are() {
    let (_app, host) = pads().await;
    let error = host.instance("%61lice").await.unwrap_err();
    assert!(error.to_string().contains("must contain only"), "{error}");
    assert_eq!(host.instance("alice").await.unwrap().id(), "alice");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_one_spelling() {
    let (app, host) = pads().await;
    for path in [
        "/p%61ds/alice/ping",
        "/Pads/alice/ping",
        "/pads%2Falice/ping",
        "//pads/alice/ping",
    ] {
        assert_eq!(
            app.get(path).send().await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    assert_eq!(host.len(), 0);
}
