#![allow(unused)]

use pinned::Durable;

#[derive(Durable)]
struct Counter {
    #[durable]
    count: u64,
}

fn main() {}
