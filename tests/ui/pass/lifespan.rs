use pinned::{Context, lifespan, pinned_api};

struct Counter {
    id: String,
}

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        Self {
            id: ctx.id().to_owned(),
        }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.id.clear();
    }
}

#[derive(Default)]
struct Plain;

#[pinned_api]
impl Plain {}

fn main() {}
