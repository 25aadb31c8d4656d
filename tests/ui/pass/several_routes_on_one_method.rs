use pinned::{PinnedApi, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    #[route::post("/")]
    #[route::get("/value", auth = none)]
    async fn read(&self) {}
}

fn main() {
    assert_eq!(Counter::routes().count(), 3);
    assert!(Counter::routes().all(|route| route.handler() == "read"));
}
