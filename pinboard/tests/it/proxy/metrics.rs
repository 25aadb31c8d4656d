//! What is counted (P11).

use pinned_testing::MetricsProbe;

use super::rig::{Rig, get, soon};

#[tokio::test]
async fn answers_failures_and_connections_are_counted() {
    let probe = MetricsProbe::new();
    let _watching = probe.watch();
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let requests = |class| probe.counter("pinboard_requests_total", &[("class", class)]);
    let failures =
        |outcome| probe.counter("pinboard_forward_failures_total", &[("outcome", outcome)]);
    let active = |kind| probe.gauge("pinboard_active_connections", &[("kind", kind)]);

    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.asked().await;
    assert_eq!((active("client"), active("tunnel")), (1.0, 0.0));
    peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
    client.head().await;
    assert_eq!(requests("2xx"), 1);
    assert_eq!(
        probe
            .histogram("pinboard_request_duration_seconds", &[])
            .len(),
        1
    );

    client.write(get("/rooms/a$")).await;
    client.response().await;
    assert_eq!(requests("4xx"), 1);

    client.write(get("/rooms/alice")).await;
    peer.head().await;
    peer.write("HTTP/1.1 503 Busy\r\npinned-refusal: busy\r\ncontent-length: 0\r\n\r\n")
        .await;
    client.response().await;
    assert_eq!((requests("5xx"), failures("refused")), (1, 1));

    client.write(get("/rooms/alice")).await;
    peer.head().await;
    drop(peer);
    client.response().await;
    assert_eq!((requests("5xx"), failures("reset")), (2, 1));

    client
        .write(
            "GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n",
        )
        .await;
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\nx";
    let (peer, _) = worker.answer(switch).await;
    client.head().await;
    client.expect("x").await;
    assert_eq!(requests("1xx"), 1);
    assert_eq!((active("client"), active("tunnel")), (0.0, 1.0));
    worker.vanish();
    drop(peer);
    drop(client);

    let mut client = rig.get("/rooms/alice").await;
    client.response().await;
    assert_eq!((requests("5xx"), failures("unreachable")), (3, 1));
    drop(client);
    // "gauges return to 0"
    soon("gauges at zero", async {
        while active("client") + active("tunnel") > 0.0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
