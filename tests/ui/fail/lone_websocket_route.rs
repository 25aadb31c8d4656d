use pinned::route;

struct Counter;

impl Counter {
    #[route::websocket("/")]
    async fn read(&self) {}
}

fn main() {}
