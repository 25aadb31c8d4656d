use pinned::{pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self, id: String) {
        drop(id);
    }
}

fn main() {}
