use pinned::authorize;

struct Counter;

impl Counter {
    #[authorize]
    async fn authorize() {}
}

fn main() {}
