#![deny(
    private_interfaces,
    unreachable_pub,
    missing_docs,
    unused,
    nonstandard_style,
    rust_2018_idioms,
    unused_qualifications,
    single_use_lifetimes,
    non_local_definitions,
    clippy::all
)]
#![forbid(unsafe_code)]
//! A crate whose author reads every lint.

use pinned::{Auth, Connection, Context, Denied, Instance, Json, lifespan, pinned_api, route};

/// A public struct.
pub struct Counter {
    count: u64,
}

/// Only for this crate.
pub(crate) struct Caller {
    name: String,
}

#[pinned_api("/counters", idle_timeout = "5m")]
impl Counter {
    #[lifespan::setup]
    async fn setup(_ctx: Context) -> Self {
        Self { count: 0 }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {}

    #[authorize]
    async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<Caller, Denied> {
        Ok(Caller {
            name: String::new(),
        })
    }

    #[stats]
    fn row(&self) -> u64 {
        self.count
    }

    /// Adds one.
    #[route::post("/increment")]
    pub async fn increment(&mut self) -> Json<u64> {
        self.count += 1;
        Json(self.count)
    }

    #[route::get("/")]
    async fn read(&self, caller: Auth<Caller>) -> Result<String, Json<u64>> {
        Ok(caller.name.clone())
    }

    #[route::put("/")]
    async fn slowly(this: Instance<Self>, _body: String) -> impl axum::response::IntoResponse {
        this.id().to_owned()
    }
}

mod inner {
    use pinned::{pinned_api, route};

    #[derive(Default)]
    pub(crate) struct Hidden;

    #[pinned_api("/hidden")]
    impl Hidden {
        #[route::get("/")]
        pub(crate) async fn read(&self) {}
    }

    #[derive(Default)]
    struct Private;

    #[pinned_api("/private")]
    impl Private {
        #[route::get("/")]
        async fn read(&self) {}
    }
}

fn main() {
    let _ = inner::Hidden;
}
