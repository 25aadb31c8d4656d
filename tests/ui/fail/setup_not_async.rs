use pinned::{Context, lifespan, pinned_api};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    fn setup(_ctx: Context) -> Self {
        Self
    }
}

fn main() {}
