#![allow(unused)]

use pinned::{Dispatch, Instance, PersistentQueue, Tray, pinned_api};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<u64>,
}

#[derive(Default)]
struct Lane;

#[pinned_api("/lanes")]
impl Lane {
    #[tray]
    async fn work(item: u64, dispatch: Dispatch<Work>) {}
}

fn main() {}
