#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    fn enqueue<T: Into<String>>(&mut self, item: T) {
        self.queue.push(item.into());
    }

    fn implied(&mut self, item: impl Into<String>) {
        self.queue.push(item.into());
    }
}

fn main() {}
