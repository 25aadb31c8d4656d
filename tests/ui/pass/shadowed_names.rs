#![allow(dead_code, non_camel_case_types, unused_macros)]

use pinned::{lifespan, pinned_api, route};

pub struct Result;
pub struct Option;
pub struct String;
pub struct Vec;
pub struct Box;
pub struct Ok;
pub struct Err;
pub struct Some;
pub struct None;
pub struct Duration;
pub struct Response;
pub struct usize;
pub struct str;
pub trait Send {}
pub trait Sync {}
pub trait Future {}
pub trait Into {}
pub trait Default {}
pub trait IntoResponse {}
pub trait PinnedApi {}
pub mod core {}
pub mod std {}
pub mod alloc {}
macro_rules! file {
    () => {
        compile_error!("not this one")
    };
}
macro_rules! env {
    ($name:literal) => {
        compile_error!("not this one")
    };
}

struct Counter {
    count: u64,
}

#[pinned_api("/counters", idle_timeout = "5m", max_instances = 3, env = "eu")]
impl Counter {
    #[lifespan::setup]
    async fn setup(_ctx: pinned::Context) -> Self {
        Self { count: 0 }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {}

    #[authorize]
    async fn authorize(
        _ctx: &pinned::Context,
        _conn: &pinned::Connection,
    ) -> ::core::result::Result<u64, pinned::Denied> {
        ::core::result::Result::Ok(1)
    }

    #[stats]
    fn stats(&self) -> u64 {
        self.count
    }

    #[route::get("/")]
    async fn read(&self, caller: pinned::Auth<u64>) -> &'static ::core::primitive::str {
        let _ = caller;
        "read"
    }

    #[route::put("/")]
    async fn write(&mut self, ctx: pinned::Context, body: ::std::string::String) {
        let _ = (ctx, body);
    }

    #[route::websocket("/ws")]
    async fn talk(this: pinned::Instance<Self>, socket: pinned::WebSocket) {
        let _ = (this, socket);
    }
}

fn main() {}
