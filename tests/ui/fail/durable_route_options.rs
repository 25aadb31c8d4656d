#![allow(unused)]

use pinned::{pinned_api, route};

#[derive(Default)]
struct Room;

#[pinned_api("/rooms")]
impl Room {
    #[route::get("/a", durable, durable)]
    async fn twice(&self) {}

    #[route::get("/b", durable = true)]
    async fn with_a_value(&self) {}
}

fn main() {}
