use pinned::{Json, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self, _text: Json<Vec<&str>>) {}
}

fn main() {}
