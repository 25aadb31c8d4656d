#![allow(unused)]

use pinned::Durable;

#[derive(Durable)]
struct Counter {
    count: u64,
}

fn main() {}
