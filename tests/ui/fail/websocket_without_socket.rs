use pinned::{Instance, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::websocket("/ws")]
    async fn talk(_this: Instance<Self>) {}
}

fn main() {}
