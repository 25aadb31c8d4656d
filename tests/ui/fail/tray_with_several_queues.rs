#![allow(unused)]

use pinned::{PersistentQueue, Tray};

#[derive(Tray)]
struct Work {
    first: PersistentQueue<u64>,
    second: PersistentQueue<u64>,
    third: PersistentQueue<String>,
}

fn main() {}
