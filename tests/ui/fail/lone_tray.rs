#![allow(unused)]

use pinned::{Dispatch, Instance, PersistentQueue, Tray};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<u64>,
}

struct Lane;

impl Lane {
    #[tray]
    async fn work(this: Instance<Self>, item: u64, dispatch: Dispatch<Work>) {}
}

fn main() {}
