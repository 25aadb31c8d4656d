use pinned::{Auth, Connection, Context, Denied, pinned_api, route};

#[derive(Default)]
struct Counter;

struct User;

struct Admin;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<User, Denied> {
        Ok(User)
    }

    #[route::get("/")]
    async fn read(&self, _admin: Auth<Admin>) {}
}

fn main() {}
