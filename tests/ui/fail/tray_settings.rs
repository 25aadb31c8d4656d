#![allow(unused)]

use pinned::{PersistentQueue, Tray};

#[derive(Tray)]
#[tray(version = "one", max_attempts = 0, dispatch_timeout = "0s", drain_on_eviction = 1, attempts = 3)]
struct Work {
    queue: PersistentQueue<u64>,
}

const ATTEMPTS: u64 = 3;

#[derive(Tray)]
#[tray(version = 1.5, max_attempts = ATTEMPTS, dispatch_timeout = 30, max_attempts = 3, drain_on_eviction)]
struct More {
    queue: PersistentQueue<u64>,
}

#[derive(Tray)]
#[tray(map, items)]
struct Misplaced {
    queue: PersistentQueue<u64>,
}

fn main() {}
