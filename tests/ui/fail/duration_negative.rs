use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", idle_timeout = "-5m")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
