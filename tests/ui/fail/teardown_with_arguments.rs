use pinned::{Context, lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::teardown]
    async fn end(&mut self, _ctx: Context) {}
}

fn main() {}
