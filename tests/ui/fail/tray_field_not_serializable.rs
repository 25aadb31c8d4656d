#![allow(unused)]

use pinned::{Persistent, PersistentQueue, Tray};

#[derive(Default)]
struct Job;

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<Job>,
    last: Persistent<Job>,
}

fn main() {}
