#![allow(unused)]

use pinned::{Instance, WebSocket, pinned_api, route};

#[derive(Default)]
struct Room;

#[pinned_api("/rooms")]
impl Room {
    #[route::websocket("/ws", durable)]
    async fn talk(this: Instance<Self>, socket: WebSocket) {}
}

fn main() {}
