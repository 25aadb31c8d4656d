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

    async fn admins(_ctx: &Context, _conn: &Connection) -> Result<Admin, Denied> {
        Ok(Admin)
    }

    #[route::get("/")]
    #[route::get("/admin", auth = Self::admins)]
    async fn read(&self, _user: Auth<User>) {}
}

fn main() {}
