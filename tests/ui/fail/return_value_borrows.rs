use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter {
    name: String,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) -> &str {
        &self.name
    }
}

fn main() {}
