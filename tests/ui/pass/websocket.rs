use axum::extract::Path;
use pinned::{Context, Instance, WebSocket, pinned_api, route};

#[derive(Default)]
struct Chat;

#[pinned_api("/chats")]
impl Chat {
    #[route::websocket("/ws")]
    async fn talk(this: Instance<Self>, socket: WebSocket) {
        let _ = this.id();
        drop(socket);
    }

    #[route::websocket("/rooms/{room}")]
    async fn room(
        this: Instance<Chat>,
        Path(room): Path<String>,
        ctx: Context,
        mut socket: pinned::WebSocket,
    ) {
        let _ = (this, room, ctx, &mut socket);
    }

    #[route::get("/ws")]
    async fn page(&self) {}
}

fn main() {}
