use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("counters")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
