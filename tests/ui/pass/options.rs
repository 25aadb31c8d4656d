use pinned::{PinnedApi, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api(
    "/counters",
    idle_timeout = "1h30m",
    release_placement_on_idle = false,
    detached_timeout = "1d",
    sweep_interval = "250ms",
    max_instances = 100_000,
    max_concurrent_activations = 8,
    activation_queue_deadline = "2s",
    turn_timeout = "10s",
    max_waiting = 0,
    env = "eu",
    crate = ::pinned,
)]
impl Counter {}

fn main() {
    let options = Counter::OPTIONS;
    assert_eq!(
        options.idle_timeout.map(|timeout| timeout.as_secs()),
        Some(5_400)
    );
    assert_eq!(options.max_waiting, Some(0));
    assert_eq!(options.env, Some("eu"));
}
