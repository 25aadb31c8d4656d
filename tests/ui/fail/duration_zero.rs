use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", sweep_interval = "0s")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
