use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    fn read(&self) -> &'static str {
        "now"
    }
}

fn main() {}
