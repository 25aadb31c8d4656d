#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    fn shared(&self, item: String) {}

    fn taken(self, item: String) {}

    fn boxed(self: Box<Self>, item: String) {}

    fn none(item: String) {}
}

fn main() {}
