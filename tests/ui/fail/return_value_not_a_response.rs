use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

struct Value;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self) -> Value {
        Value
    }
}

fn main() {}
