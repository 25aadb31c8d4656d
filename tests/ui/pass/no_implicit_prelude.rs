#![no_implicit_prelude]

use ::pinned::{lifespan, pinned_api, route};

#[derive(::core::default::Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters", idle_timeout = "5m")]
impl Counter {
    #[lifespan::setup]
    async fn setup(_ctx: ::pinned::Context) -> Self {
        ::core::default::Default::default()
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {}

    #[authorize]
    async fn authorize(
        _ctx: &::pinned::Context,
        _conn: &::pinned::Connection,
    ) -> ::core::result::Result<u64, ::pinned::Denied> {
        ::core::result::Result::Ok(1)
    }

    #[stats]
    fn stats(&self) -> u64 {
        self.count
    }

    #[route::get("/")]
    async fn read(&self, caller: ::pinned::Auth<u64>) -> &'static str {
        let _ = caller;
        "read"
    }

    #[route::put("/")]
    async fn write(&mut self, ctx: ::pinned::Context, body: ::std::string::String) {
        let _ = (ctx, body);
    }

    #[route::websocket("/ws")]
    async fn talk(this: ::pinned::Instance<Self>, socket: ::pinned::WebSocket) {
        let _ = (this, socket);
    }
}

fn main() {}
