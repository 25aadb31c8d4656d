//! Producers, clients, and what counts as activity (H6.1, H6.2, H6.4).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_producer_advances_only_as_its_client_takes_chunks() {
    // H6.1
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/numbers").await;
    for n in 0..5 {
        assert_eq!(stream.text().await, n.to_string());
    }
    assert_eq!(app.probe.count("made"), 5);
    pass(secs(600)).await;
    assert_eq!(app.probe.count("made"), 5, "nothing is made ahead");
    assert_eq!(stream.text().await, "5");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_its_producer() {
    // H6.1, over a connection: no more is made than the buffers of the sockets and of the server take.
    let app = App::of::<Feed>().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("bound");
    let router = app.worker().into_router();
    let server = domain().spawn(async move { axum::serve(listener, router).await });
    let mut client = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let request = b"GET /t/a/numbers HTTP/1.1\r\nhost: here\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut client, request)
        .await
        .expect("sent");
    app.probe.seen("made").await;
    // Until nothing more is made for a while.
    let mut made = 0;
    loop {
        domain().sleep(millis(200)).await;
        let now = app.probe.count("made");
        if now == made {
            break;
        }
        made = now;
    }
    // It is stream work still, and ends with its client.
    assert_eq!(app.worker().stats()["instances"][0]["connections"], 1);
    drop(client);
    app.probe.seen("closed").await;
    assert_eq!(app.probe.count("closed"), 1);
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_keeps_its_instance_and_its_end_lets_it_go() {
    // H6.2
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    for _ in 0..3 {
        pass(secs(30)).await;
        app.get("/t/a").await.assert_ok("here");
    }
    assert_eq!(app.probe.count("setup"), 1);
    app.probe.open("end");
    app.probe.open("1");
    stream.assert_end().await;
    pass(secs(8)).await;
    assert!(!app.probe.has("teardown"), "its end is activity");
    pass(secs(4)).await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_does_not_hold_the_turn_that_it_began_under() {
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    app.get("/t/a").await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_cancels_its_producer_once() {
    // H6.3
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    drop(stream);
    assert_eq!(app.probe.count("closed"), 1);
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_before_the_stream_began_leaves_nothing_open() {
    // H6.3
    let app = App::with::<Feed>(short()).await;
    let client = app.client("/t/a/late");
    app.probe.seen("at late").await;
    client.leave().await;
    app.probe.open("late");
    app.probe.seen("closed").await;
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_panics_is_counted_and_harms_nobody() {
    // H6.3
    let metrics = Metrics::capture();
    let app = App::with::<Feed>(short()).await;
    app.probe.open("torn");
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    drop(stream);
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=stream_aclose}"),
        1.0
    );
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_for_longer_than_the_idle_timeout_goes_on() {
    // H6.4, E33
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    for n in 1..4 {
        pass(secs(60)).await;
        app.probe.open(&n.to_string());
        assert_eq!(stream.text().await, n.to_string());
    }
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_for_longer_than_the_idle_timeout_keeps_its_stream() {
    // H6.4, E33
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/numbers").await;
    assert_eq!(stream.text().await, "0");
    pass(secs(120)).await;
    assert_eq!(stream.text().await, "1");
    assert_eq!(app.probe.count("setup"), 1);
    drop(stream);
    pass(secs(5)).await;
    assert!(!app.probe.has("teardown"), "its end is activity");
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_has_begun_to_read_counts() {
    // H6.4: from the handler's return on
    let app = App::with::<Feed>(short()).await;
    let stream = app.stream("/t/a/numbers").await;
    pass(secs(60)).await;
    assert_eq!(app.host::<Feed>().len(), 1);
    drop(stream);
    app.empty::<Feed>().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_known_length_is_no_stream() {
    let app = App::with::<Feed>(short()).await;
    let unread = app.stream("/t/a/fixed").await;
    app.empty::<Feed>().await;
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_fails_breaks_its_body_off_and_leaves_the_instance() {
    let app = App::with::<Feed>(short()).await;
    let mut stream = app.stream("/t/a/error").await;
    assert_eq!(stream.text().await, "0");
    stream.next().await.expect_err("broken off");
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 1);
    app.empty::<Feed>().await;
}
