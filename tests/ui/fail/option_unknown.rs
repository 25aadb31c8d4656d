use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", idle = "5m")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
