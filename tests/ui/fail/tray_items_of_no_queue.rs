#![allow(unused)]

use pinned::{Persistent, Tray};

#[derive(Tray)]
struct Work {
    #[tray(items)]
    done: Persistent<Vec<u64>>,
}

fn main() {}
