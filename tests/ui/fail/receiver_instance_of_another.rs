use pinned::{Instance, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(_this: Instance<String>) {}
}

fn main() {}
