#![allow(unused)]

use pinned::{Persistent, PersistentQueue, Tray};

struct NoDefault;

#[derive(Tray)]
struct Work {
    #[tray(initial = vec![1])]
    queue: PersistentQueue<u64>,
    #[tray(initial = "one")]
    number: Persistent<u64>,
    #[tray(skip)]
    skipped: NoDefault,
}

fn main() {}
