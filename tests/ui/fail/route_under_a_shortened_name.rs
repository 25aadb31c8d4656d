use pinned::pinned_api;
use pinned::route::get;

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[get("/")]
    async fn read(&self) {}
}

fn main() {}
