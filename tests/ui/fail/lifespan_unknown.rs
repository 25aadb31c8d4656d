use pinned::{lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::start]
    async fn start(&mut self) {}
}

fn main() {}
