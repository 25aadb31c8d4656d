use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", max_instances = 0)]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
