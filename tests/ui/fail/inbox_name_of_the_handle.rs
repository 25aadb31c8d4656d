#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    fn kick(&mut self, item: String) {
        self.queue.push(item);
    }
}

fn main() {}
