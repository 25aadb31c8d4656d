use pinned::{Auth, Connection, Context, Denied, pinned_api, route};

#[derive(Default)]
struct Counter;

struct User;

#[pinned_api("/counters")]
impl Counter {
    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<User, Denied> {
        Ok(User)
    }

    #[route::get("/", auth = none)]
    async fn read(&self, _user: Auth<User>) {}
}

fn main() {}
