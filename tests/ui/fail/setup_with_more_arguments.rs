use pinned::{Context, lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    async fn setup(_ctx: Context, _name: String) -> Self {
        Self
    }
}

fn main() {}
