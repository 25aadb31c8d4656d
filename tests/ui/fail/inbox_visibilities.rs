#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    pub fn enqueue(&mut self, item: String) {
        self.queue.push(item);
    }

    fn clear(&mut self) {
        self.queue.clear();
    }

    pub(crate) fn trim(&mut self) {
        self.queue.pop_back();
    }
}

fn main() {}
