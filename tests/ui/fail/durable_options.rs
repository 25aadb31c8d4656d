#![allow(unused)]

use pinned::{Durable, Persistent};

#[derive(Durable)]
#[durable(setup, setup, version = 1)]
struct Counter {
    #[durable(skip, initial = 1)]
    count: Persistent<u64>,
    #[durable(default = 3)]
    other: Persistent<u64>,
}

#[derive(Durable)]
enum Either {
    One,
}

fn main() {}
