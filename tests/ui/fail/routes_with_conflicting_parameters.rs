use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/items/{item}")]
    async fn read(&self) {}

    #[route::put("/items/{name}")]
    async fn write(&mut self) {}
}

fn main() {}
