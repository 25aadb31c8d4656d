use pinned::{Auth, Connection, Context, Denied, pinned_api, route};

type Checked<T> = Result<T, Denied>;

#[derive(Default)]
struct Document;

#[pinned_api("/documents")]
impl Document {
    #[pinned::authorize]
    async fn authorize(_: &Context, _: &Connection) -> Checked<Vec<String>> {
        Ok(Vec::new())
    }

    #[route::get("/")]
    async fn read(&self, user: Auth<Vec<String>>) -> String {
        user.join(", ")
    }
}

fn main() {}
