#![allow(unused)]

use pinned::{Persistent, PersistentQueue, Tray};

#[derive(Tray)]
struct Work {
    #[tray(items)]
    queue: PersistentQueue<u64>,
    #[tray(items)]
    second: PersistentQueue<u64>,
    #[tray(skip, initial = 3)]
    skipped: u64,
    #[tray(initial)]
    valueless: Persistent<u64>,
    #[tray(default = 3)]
    unknown: Persistent<u64>,
    #[tray]
    empty: Persistent<u64>,
    #[tray(skip = true)]
    word: u64,
}

fn main() {}
