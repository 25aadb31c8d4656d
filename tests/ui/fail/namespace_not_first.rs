use pinned::pinned_api;

#[derive(Default)]
struct Counter;

#[pinned_api(idle_timeout = "5m", "/counters")]
impl Counter {
    async fn helper(&self) {}
}

fn main() {}
