//! What the denied are told (H2.7 to H2.16).

use pinned_testing::MetricsProbe;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_denial_says_what_it_was_given_to_say() {
    // H2.7, H2.8
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "deny").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (401, r#"{"message":"sign in"}"#)
    );
    let reply = place.ask("/vaults/ada", "forbid").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (403, r#"{"message":"sign in"}"#)
    );
    let reply = place.ask("/vaults/ada", "payload").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (401, json!({ "why": "\u{e9}", "until": 1 }))
    );
    assert_eq!(reply.header("content-type"), Some("application/json"));
    // Deliberate: no failure.
    assert_eq!(metrics.counter("pinned_request_failures_total", &[]), 0);

    let reply = place.ask("/vaults/ada", "unserializable").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (500, "Internal Server Error")
    );
    let labels = [("phase", "auth"), ("transport", "http")];
    assert_eq!(metrics.counter("pinned_request_failures_total", &labels), 1);
    assert_eq!(AuthRejected::new("m").code("c").code_str(), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_payload_keeps_the_order_of_its_members() {
    // H2.8
    #[derive(serde::Serialize)]
    struct Why {
        zeta: u8,
        alpha: u8,
    }
    struct Ordered;
    #[pinned_api]
    impl Ordered {
        #[lifespan::setup]
        async fn setup(_ctx: Context) -> Self {
            Self
        }
        #[authorize]
        async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<(), AuthRejected> {
            Err(AuthRejected::new("no").payload(Why { zeta: 1, alpha: 2 }))
        }
        #[route::get("/")]
        async fn open(&self) {}
    }
    let app = App::start(PinnedWorker::builder().host::<Ordered>("/ordered")).await;
    assert_eq!(
        app.get("/ordered/a").send().await.body,
        r#"{"zeta":1,"alpha":2}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_denied_socket_is_closed_with_the_message() {
    // H2.9
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "deny")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();

    let mut socket = place
        .ask("/vaults/ada/chat", "deny")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));

    let mut socket = place
        .ask("/vaults/ada/chat", "payload")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    let payload = frame(&mut socket).await;
    assert!(
        payload.contains('\u{e9}') && !payload.contains(' '),
        "{payload}"
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&payload).unwrap(),
        json!({ "why": "\u{e9}", "until": 1 })
    );
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));
    assert_eq!(place.handled(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_denial_is_cut_on_a_character_boundary() {
    // H6.10; the reason of a close frame has at most 123 bytes.
    let place = local().await;
    let mut socket = place
        .ask("/vaults/ada/chat", "long")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "\u{e9}".repeat(61)));
    let reply = place.ask("/vaults/ada", "long").send().await;
    assert_eq!(reply.json(), json!({ "message": "\u{e9}".repeat(100) }));
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_sent_is_a_failure() {
    // H2.10
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "payload")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();
    let mut socket = place
        .ask("/vaults/ada/chat", "unserializable")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    let labels = [("phase", "auth"), ("transport", "websocket")];
    assert_eq!(metrics.counter("pinned_request_failures_total", &labels), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_before_its_payload_ends_quietly() {
    // H2.11
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    let call = place.passes(0, "payload").header("x-accept", "1");
    drop(call.path("/vaults/ada/chat").connect().await.unwrap());
    place.door.gates[0].open();
    settle().await;
    assert_eq!(metrics.counter("pinned_request_failures_total", &[]), 0);
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
}

#[tokio::test(start_paused = true)]
async fn an_http_error_of_the_authorizer_passes_through() {
    // H2.12
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "http").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (429, r#"{"detail":"slow down"}"#)
    );
    let mut socket = place
        .ask("/vaults/ada/chat", "http")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1008, "slow down".to_owned())
    );
    assert_eq!(metrics.counter("pinned_request_failures_total", &[]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_close_of_the_authorizer_keeps_its_code_and_reason() {
    // H2.13
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "close")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();
    let mut socket = place
        .ask("/vaults/ada/chat", "close")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (4401, "who are you?".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_whole_response_answers_the_request() {
    // H2.14
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "redirect").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (303, Some("/sign-in"))
    );
    settle().await;
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
    // A warm instance stays.
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(
        place.ask("/vaults/ada", "redirect").send().await.status,
        StatusCode::SEE_OTHER
    );
    settle().await;
    assert_eq!(place.counts(), (1, 1, 1));
    assert_eq!(metrics.counter("pinned_request_failures_total", &[]), 0);

    let mut socket = place
        .ask("/vaults/ada/chat", "redirect")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    let labels = [("phase", "auth"), ("transport", "websocket")];
    assert_eq!(metrics.counter("pinned_request_failures_total", &labels), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_authorizer_leaks_nothing_and_promises_nothing() {
    // H2.15, H3.13
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let place = local().await;
    for what in ["fail", "panic", "close"] {
        let reply = place.ask("/vaults/ada", what).send().await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (503, r#"{"detail":"authorization failed"}"#)
        );
        assert_eq!(reply.header("retry-after"), None);
    }
    let labels = [("phase", "auth"), ("transport", "http")];
    assert_eq!(metrics.counter("pinned_request_failures_total", &labels), 3);
    for what in ["fail", "panic"] {
        let mut socket = place
            .ask("/vaults/ada/chat", what)
            .header("x-accept", "1")
            .connect()
            .await
            .unwrap();
        assert_eq!(
            closed_with(&mut socket).await,
            (1011, "authorization failed".to_owned())
        );
        place
            .ask("/vaults/ada/chat", what)
            .refused_socket()
            .await
            .assert_closed_before_acceptance();
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_has_the_last_word_on_an_accepted_socket() {
    // H2.16
    let place = local().await;
    let call = place
        .ask("/vaults/ada/chat", "fail")
        .header("x-accept", "with-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(
        frame(&mut socket).await,
        format!("{:?}", failed("authorization failed"))
    );
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );

    let call = place
        .ask("/vaults/ada/chat", "fail")
        .header("x-accept", "with-panicking-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    // A deliberate denial is no failure.
    let call = place
        .ask("/vaults/ada/chat", "deny")
        .header("x-accept", "with-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));
}

fn failed(message: &str) -> impl std::fmt::Debug + use<> {
    #[derive(Debug)]
    #[expect(dead_code, reason = "read through its Debug alone")]
    struct Failed {
        message: String,
    }
    Failed {
        message: message.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_met_on_an_accepted_socket_is_told_to_its_hook() {
    // H2.16, H4.4: the instance closes while the client is being authorized.
    let place = local().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    let call = place
        .passes(0, "")
        .header("x-accept", "with-hook")
        .path("/vaults/ada/chat");
    let mut socket = call.connect().await.unwrap();
    place.host.abort("ada");
    place.door.gates[0].open();
    let words = frame(&mut socket).await;
    assert_eq!(
        words,
        r#"Refused { message: "instance closing; retry", retry_after: 1s }"#
    );
    assert_eq!(
        closed_with(&mut socket).await,
        (1013, "instance closing; retry".to_owned())
    );
    assert_eq!(place.handled(), 1);
}
