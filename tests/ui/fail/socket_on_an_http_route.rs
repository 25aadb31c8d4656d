use pinned::{Instance, WebSocket, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/ws")]
    async fn talk(_this: Instance<Self>, _socket: WebSocket) {}
}

fn main() {}
