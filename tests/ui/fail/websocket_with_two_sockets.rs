use pinned::{Instance, WebSocket, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::websocket("/ws")]
    async fn talk(_this: Instance<Self>, _a: WebSocket, _b: WebSocket) {}
}

fn main() {}
