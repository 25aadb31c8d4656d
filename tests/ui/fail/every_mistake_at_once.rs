use pinned::{lifespan, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("counters", idle = "5m", sweep_interval = "often")]
impl Counter {
    #[route::get("read")]
    async fn read(&self, id: String) {
        drop(id);
    }

    #[route::post("/increment")]
    fn increment(self) {}

    #[lifespan::teardown]
    async fn end(&self) {}
}

fn main() {}
