//! Logs and metrics.

use pinned_testing::{MetricsProbe, capture_logs, pinned_app};
use tracing::Level;

use crate::room::Room;

#[tokio::test]
async fn a_host_is_seen_to_count_and_log() -> pinned::Result<()> {
    let logs = capture_logs();
    let probe = MetricsProbe::new();
    let _watching = probe.watch();
    let app = pinned_app::<Room>().await?;
    app.client().post("/threads/blue/increment").send().await;
    let labels = &[("namespace", "/threads")];
    assert_eq!(probe.counter("pinned_instance_activations_total", &[]), 1);
    assert_eq!(probe.gauge("pinned_active_instances", &[]), 1.0);
    assert_eq!(
        probe
            .histogram("pinned_request_duration_seconds", labels)
            .len(),
        1
    );
    app.shutdown().await?;
    assert_eq!(probe.gauge("pinned_active_instances", &[]), 0.0);
    let event = logs.find("DEV MODE").expect("local mode is told of");
    assert_eq!(
        (event.target.as_str(), event.level),
        ("pinned::worker", Level::WARN)
    );
    let instance = logs.with_target("pinned::host");
    assert!(
        instance
            .iter()
            .any(|event| event.field("instance_id") == Some("blue")),
        "{logs:?}"
    );
    logs.clear();
    assert_eq!(logs.count(""), 0);
    Ok(())
}
