#![allow(unused)]

use pinned::{Durable, Persistent, PersistentQueue};

#[derive(Durable)]
struct Counter {
    count: Persistent<u64>,
    queue: PersistentQueue<u64>,
}

type Letters = PersistentQueue<String>;

#[derive(Durable)]
struct Aliased {
    #[durable]
    letters: Letters,
}

fn main() {}
