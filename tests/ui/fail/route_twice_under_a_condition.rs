use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/value")]
    async fn read(&self) {}

    #[cfg(not(windows))]
    #[route::get("/value")]
    async fn read_again(&self) {}
}

fn main() {}
