use pinned::{lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::teardown]
    fn end(&mut self) {}
}

fn main() {}
