use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get(PATH)]
    async fn read(&self) {}
}

const PATH: &str = "/";

fn main() {}
