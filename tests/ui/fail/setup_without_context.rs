use pinned::{lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    async fn setup() -> Self {
        Self
    }
}

fn main() {}
