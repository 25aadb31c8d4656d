use pinned::{Instance, PinnedApi, lifespan, pinned_api, route};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[tracing::instrument(skip(self))]
    #[route::get("/above")]
    async fn above(&self) -> String {
        self.count.to_string()
    }

    #[route::post("/below")]
    #[tracing::instrument(skip_all, fields(length = body.len()), ret)]
    async fn below(&mut self, body: String) -> String {
        body
    }

    #[route::post("/instance")]
    #[tracing::instrument(skip_all)]
    async fn instance(this: Instance<Self>) -> String {
        this.id().to_owned()
    }

    #[lifespan::teardown]
    #[tracing::instrument(skip_all)]
    async fn teardown(&mut self) {}
}

fn main() {
    assert_eq!(Counter::routes().count(), 3);
}
