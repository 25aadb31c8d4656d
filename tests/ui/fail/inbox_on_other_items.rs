#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[inbox]
#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

trait Enqueue {
    fn enqueue(&mut self, item: String);
}

#[inbox]
impl Enqueue for Work {
    fn enqueue(&mut self, item: String) {
        self.queue.push(item);
    }
}

fn main() {}
