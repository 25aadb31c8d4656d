use pinned::{Json, PinnedApi, pinned_api, route};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/increment")]
    async fn increment(&mut self) -> Json<u64> {
        self.count += 1;
        Json(self.count)
    }

    #[route::get("/")]
    async fn read(&self) -> Json<u64> {
        Json(self.count)
    }
}

fn main() {
    assert_eq!(Counter::NAMESPACE, Some("/counters"));
    let routes: Vec<_> = Counter::routes()
        .map(|route| (route.method().as_str(), route.path(), route.handler()))
        .collect();
    assert_eq!(
        routes,
        [("POST", "/increment", "increment"), ("GET", "/", "read")]
    );
}
