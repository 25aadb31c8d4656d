#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    fn enqueue(&mut self, item: String) -> usize {
        self.queue.push(item);
        self.queue.len()
    }
}

fn main() {}
