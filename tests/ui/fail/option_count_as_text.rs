use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", max_concurrent_activations = "2")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
