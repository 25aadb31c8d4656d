use pinned::route;

struct Counter;

impl Counter {
    #[route::get("/")]
    async fn read(&self) {}
}

fn main() {}
