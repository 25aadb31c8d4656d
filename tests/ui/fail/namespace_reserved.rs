use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api("/_pinned")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
