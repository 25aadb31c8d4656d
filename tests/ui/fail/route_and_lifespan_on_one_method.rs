use pinned::{lifespan, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/end")]
    #[lifespan::teardown]
    async fn end(&mut self) {}
}

fn main() {}
