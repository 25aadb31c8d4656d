use pinned::{Auth, AuthRejected, Connection, Context, Denied, PinnedApi, pinned_api, route};

struct User {
    name: String,
}

#[derive(Default)]
struct Document;

#[pinned_api("/documents")]
impl Document {
    #[authorize]
    async fn authorize(_ctx: &Context, conn: &Connection) -> Result<User, Denied> {
        match conn
            .headers()
            .get("x-user")
            .and_then(|name| name.to_str().ok())
        {
            Some(name) => Ok(User {
                name: name.to_owned(),
            }),
            None => Err(AuthRejected::new("who are you?").into()),
        }
    }

    async fn admins(ctx: &Context, conn: &Connection) -> Result<u64, AuthRejected> {
        let _ = (ctx, conn);
        Ok(1)
    }

    #[route::get("/")]
    async fn read(&self, user: Auth<User>) -> String {
        user.name.clone()
    }

    #[route::delete("/", auth = Self::admins)]
    async fn clear(&mut self, level: Auth<u64>) -> String {
        level.to_string()
    }

    #[route::get("/again", auth = Self::authorize)]
    async fn again(&self, Auth(user): Auth<User>) -> String {
        user.name.clone()
    }

    #[route::get("/public", auth = none)]
    async fn public(&self) {}
}

fn main() {
    let auths: Vec<_> = Document::routes()
        .map(|route| format!("{:?}", route.auth()))
        .collect();
    assert_eq!(
        auths,
        [
            "Default(\"authorize\")",
            "Named(\"admins\")",
            "Named(\"authorize\")",
            "Public"
        ]
    );
}
