use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) {}
}

fn main() {}
