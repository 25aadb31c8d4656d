#![allow(unused)]

use pinned::{PersistentQueue, Tray};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<u64>,
    done: u64,
}

fn main() {}
