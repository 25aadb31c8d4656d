use pinned::lifespan;

struct Counter;

impl Counter {
    #[lifespan::teardown]
    async fn end(&mut self) {}
}

fn main() {}
