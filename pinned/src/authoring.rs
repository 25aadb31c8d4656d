//! The macros, documented where users meet them.

#[doc = include_str!("docs/pinned_api.md")]
pub use pinned_macros::pinned_api;

/// The function of a block that decides who may come in; it has no `self`, because it runs before setup.
///
/// ```
/// use pinned::{Connection, Context, Denied, pinned_api};
///
/// #[derive(Default)]
/// struct Vault;
///
/// #[pinned_api("/vaults")]
/// impl Vault {
///     #[authorize]
///     async fn authorize(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
///         match conn.headers().get("x-key") {
///             Some(key) if key == ctx.id() => Ok(()),
///             _ => Err(pinned::AuthRejected::new("wrong key").forbidden().into()),
///         }
///     }
/// }
/// ```
pub use pinned_macros::authorize;

/// The function of a block that adds to the instance's row in `/_pinned/stats`.
///
/// ```
/// use pinned::pinned_api;
///
/// #[derive(Default)]
/// struct Room { members: Vec<String> }
///
/// #[pinned_api("/rooms")]
/// impl Room {
///     #[stats]
///     fn stats(&self) -> std::collections::HashMap<&'static str, usize> {
///         [("members", self.members.len())].into()
///     }
/// }
/// ```
pub use pinned_macros::stats;

/// Keeps a library crate in the program, although nothing of it is used by name, so that its annotated structs are
/// found.
///
/// A linker takes from a library only what the program refers to. A crate of which nothing at all is used may be left
/// out whole, annotated structs included; naming it once is enough:
///
/// ```
/// pinned::link!(pinned);
/// ```
#[macro_export]
macro_rules! link {
    ($($name:ident),+ $(,)?) => {
        $(
            #[allow(unused_extern_crates)]
            const _: () = {
                extern crate $name;
            };
        )+
    };
}

/// Which requests a handler answers: `#[route::get("/path")]` and its kin, inside a [`macro@crate::pinned_api`] block.
///
/// The receiver says how the handler runs:
///
/// | receiver | meaning |
/// |---|---|
/// | `&self` | a shared turn: beside other `&self` handlers |
/// | `&mut self` | the exclusive turn: alone, first come, first served |
/// | `this: Instance<Self>` | no turn; take one with `this.read().await?` or `this.write().await?` when needed |
///
/// Arguments are axum extractors, and the return value is anything that is `IntoResponse`. Several routes on one
/// method work. `auth = none` makes a route public, `auth = Self::other` names another authorizer of the block.
///
/// ```
/// use axum::extract::{Path, Query};
/// use pinned::{Json, pinned_api, route};
/// use std::collections::HashMap;
///
/// #[derive(Default)]
/// struct List { items: Vec<String> }
///
/// #[pinned_api("/lists")]
/// impl List {
///     #[route::get("/items/{index}")]
///     async fn item(&self, Path(index): Path<usize>) -> Json<Option<String>> {
///         Json(self.items.get(index).cloned())
///     }
///
///     #[route::post("/items")]
///     async fn add(&mut self, Query(_query): Query<HashMap<String, String>>, item: String) -> Json<usize> {
///         self.items.push(item);
///         Json(self.items.len())
///     }
/// }
/// ```
pub mod route {
    pub use pinned_macros::{
        route_delete as delete, route_get as get, route_patch as patch, route_post as post,
        route_put as put, route_websocket as websocket,
    };
}

/// How an instance begins and ends: `#[lifespan::setup]` and `#[lifespan::teardown]`, inside a
/// [`macro@crate::pinned_api`] block.
///
/// ```
/// use pinned::{Context, SetupError, lifespan, pinned_api};
///
/// struct Session { started: std::time::SystemTime }
///
/// #[pinned_api("/sessions")]
/// impl Session {
///     #[lifespan::setup]
///     async fn setup(ctx: Context) -> Result<Self, SetupError> {
///         Ok(Self { started: ctx.domain().now() })
///     }
///
///     #[lifespan::teardown]
///     async fn teardown(&mut self) {
///         println!("lived since {:?}", self.started);
///     }
/// }
/// ```
pub mod lifespan {
    pub use pinned_macros::{lifespan_setup as setup, lifespan_teardown as teardown};
}
