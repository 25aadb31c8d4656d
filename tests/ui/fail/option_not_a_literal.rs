use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters", max_instances = LIMIT)]
impl Counter {
    async fn helper(&self) {}
}

const LIMIT: usize = 3;

fn main() {}
