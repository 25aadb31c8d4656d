use pinned::{Auth, pinned_api, route};

#[derive(Default)]
struct Counter;

struct User;

#[pinned_api("/counters")]
impl Counter {
    #[route::get("/")]
    async fn read(&self, _user: Auth<User>) {}
}

fn main() {}
