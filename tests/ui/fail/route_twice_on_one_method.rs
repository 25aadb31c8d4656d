use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/value")]
    #[route::get("/value")]
    async fn read(&self) {}
}

fn main() {}
