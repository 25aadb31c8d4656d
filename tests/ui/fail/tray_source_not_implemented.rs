#![allow(unused)]

use pinned::{PersistentQueue, Tray};

#[derive(Tray)]
#[tray(source, lifecycle)]
struct Work {
    queue: PersistentQueue<u64>,
}

fn main() {}
