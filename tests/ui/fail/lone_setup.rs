use pinned::lifespan;

struct Counter;

impl Counter {
    #[lifespan::setup]
    async fn setup() {}
}

fn main() {}
