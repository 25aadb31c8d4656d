use pinned::{lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::teardown]
    async fn end(self) {}
}

fn main() {}
