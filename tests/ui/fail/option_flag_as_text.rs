use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", release_placement_on_idle = "yes")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
