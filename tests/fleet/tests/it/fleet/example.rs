//! The example `fleet`, as a person runs it (issue "pinboard", item 3).

use std::process::Command;
use std::time::Duration;

use super::process::Running;
use super::rig::free_port;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_shows_that_counters_outlive_a_drain() {
    let program = crate::executable::executable("examples", "fleet");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("fleet");
    // The ports after it are the workers'.
    let port = loop {
        let port = free_port();
        if free_port() == port + 1 && free_port() == port + 2 {
            break port;
        }
    };
    let mut command = Command::new(program);
    command.env("PORT", port.to_string());
    for name in [
        "NODE_ENV",
        "ENVIRONMENT",
        "APP_ENV",
        "PINBOARD_URL",
        "FLEET_ROLE",
    ] {
        command.env_remove(name);
    }
    let mut fleet = Running::start(command, &log);
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !said().contains("Ctrl-C drains") {
        assert!(std::time::Instant::now() < deadline, "{}", said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fleet.terminate();
    let status = fleet.ended_within(Duration::from_secs(60)).await;
    let said = said();
    assert!(status.success(), "{status}\n{said}");
    assert!(said.contains("All have exited."), "{said}");
    let (before, after) = said.split_once("It has exited.").expect("the drain");
    for name in ["alice", "bob", "carol", "dave", "erin", "frank"] {
        let count = format!("{name:<6} 1 in process");
        assert!(before.contains(&count) && after.contains(&count), "{said}");
    }
}
