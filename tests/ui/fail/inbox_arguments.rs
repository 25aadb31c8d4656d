#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    fn borrowed(&mut self, item: &str) {}

    fn pattern(&mut self, (item, _): (String, u64)) {}

    fn unnamed(&mut self, _: String) {}

    fn own(&mut self, other: Option<Self>) {}
}

fn main() {}
