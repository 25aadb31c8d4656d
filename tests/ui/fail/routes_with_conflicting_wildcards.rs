use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/{*path}")]
    async fn read(&self) {}

    #[route::get("/{*rest}")]
    async fn rest(&self) {}
}

fn main() {}
