#![allow(unused)]

use pinned::{PersistentQueue, Tray};

#[derive(Tray)]
enum Either {
    One,
}

#[derive(Tray)]
struct Tuple(PersistentQueue<u64>);

#[derive(Tray)]
struct Unit;

#[derive(Tray)]
struct Borrows<'a> {
    queue: PersistentQueue<&'a str>,
}

#[derive(Tray)]
union Both {
    number: u64,
    other: u32,
}

fn main() {}
