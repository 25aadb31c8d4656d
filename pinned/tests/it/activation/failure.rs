//! Setups that fail (H4.6, H4.7).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_setup_is_shared_by_its_callers_and_leaves_nothing() {
    // H4.6
    let metrics = Metrics::capture();
    let app = App::placed::<Archive>(HostOptions::new()).await;
    let clients: Vec<_> = (0..3).map(|_| app.client("/t/slow-bad")).collect();
    app.probe.seen("at slow-bad").await;
    settle().await;
    app.probe.open("slow-bad");
    for client in clients {
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (500, "Internal Server Error")
        );
    }
    assert_eq!(app.probe.count("setup slow-bad"), 1);
    assert!(app.host::<Archive>().is_empty());
    assert_eq!(app.host::<Archive>().activations(), 0);
    assert_eq!(app.host::<Archive>().evictions(), 0);
    assert_eq!(app.placements().requested(), [], "the placement stays");
    let failures = "pinned_request_failures_total{phase=lifespan,transport=http}";
    assert_eq!(metrics.value(failures), 3.0);
    app.probe.open("healed");
    app.get("/t/slow-bad").await.assert_ok("slow-bad");
}

#[tokio::test(start_paused = true)]
async fn the_same_epoch_is_still_admitted_after_a_failed_setup() {
    // H4.6, H12.5
    let app = App::placed::<Archive>(HostOptions::new()).await;
    for status in [500, 500] {
        assert_eq!(app.get_at("/t/bad", 3).await.status, status);
    }
    app.probe.open("healed");
    app.get_at("/t/bad", 3).await.assert_ok("bad");
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_panics_has_failed() {
    // H4.6
    let app = App::of::<Archive>().await;
    let answer = app.get("/t/torn").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (500, "Internal Server Error")
    );
    app.probe.open("healed");
    app.get("/t/torn").await.assert_ok("torn");
}

#[tokio::test(start_paused = true)]
async fn a_socket_shows_a_failed_setup_without_its_text() {
    // H4.6, H2.16
    let app = App::of::<Archive>().await;
    let refused = app.socket("/t/bad/socket").await.expect_err("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (403, ""));
    let mut accepted = app.socket("/t/bad/socket?accept").await.expect("accepted");
    assert_eq!(accepted.text().await, "failed: activation failed");
    assert_eq!(
        accepted.closed().await,
        (1011, "activation failed".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn an_http_error_of_a_setup_passes_through() {
    // H4.7
    let metrics = Metrics::capture();
    let app = App::of::<Archive>().await;
    app.get("/t/moved").await.assert_detail(410, "moved");
    let refused = app
        .socket("/t/moved/socket")
        .await
        .expect_err("not accepted");
    refused.assert_detail(410, "moved");
    let mut accepted = app
        .socket("/t/moved/socket?accept")
        .await
        .expect("accepted");
    assert_eq!(
        accepted.closed().await,
        (1011, "activation failed".to_owned())
    );
    assert!(
        !app.probe
            .events()
            .iter()
            .any(|event| event.contains("Refused"))
    );
    for transport in ["http", "websocket"] {
        let failures =
            format!("pinned_request_failures_total{{phase=lifespan,transport={transport}}}");
        assert_eq!(metrics.value(&failures), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn code_of_the_same_process_is_told_why_an_instance_cannot_be_had() {
    // H4.3, H4.6
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let host = app.host::<Archive>();
    let failed = host.read("bad").await.err().expect("a failure");
    assert!(matches!(failed, Unavailable::SetupFailed(_)));
    let _first = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let queued = host.instance("b").await.expect_err("a refusal");
    assert!(matches!(
        queued,
        Unavailable::Refused(Refusal::ActivationQueue)
    ));
}
