use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", turn_timeout = 30)]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
