#![allow(unused)]

use pinned::{Durable, Persistent};

struct Client;

#[derive(Durable)]
struct Counter {
    count: Persistent<u64>,
    client: Client,
}

fn main() {}
