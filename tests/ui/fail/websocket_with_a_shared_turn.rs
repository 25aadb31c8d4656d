use pinned::{WebSocket, pinned_api, route};

#[derive(Default)]
struct Counter;

#[pinned_api("/counters")]
impl Counter {
    #[route::websocket("/ws")]
    async fn talk(&self, socket: WebSocket) {
        drop(socket);
    }
}

fn main() {}
