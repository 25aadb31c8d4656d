use pinned::{Context, lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    async fn one(_ctx: Context) -> Self {
        Self
    }

    #[lifespan::setup]
    async fn two(_ctx: Context) -> Self {
        Self
    }
}

fn main() {}
