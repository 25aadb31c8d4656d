#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox(name = Letters, trait = 5)]
impl Work {
    fn add(&mut self, item: String) {
        self.queue.push(item);
    }
}

fn main() {}
