use pinned::{lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::teardown]
    async fn one(&mut self) {}

    #[lifespan::teardown]
    async fn two(&mut self) {}
}

fn main() {}
