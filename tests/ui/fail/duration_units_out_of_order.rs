use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", detached_timeout = "5m1h")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
