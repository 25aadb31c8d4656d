use pinned::{pinned_api, route};

struct Counter;

trait Read {
    async fn read(&self);
}

#[pinned_api("/counters")]
impl Read for Counter {
    #[route::get("/")]
    async fn read(&self) {}
}

fn main() {}
