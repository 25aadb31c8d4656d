#![allow(unused)]

use pinned::inbox;

struct Work {
    queue: Vec<String>,
}

#[inbox]
impl Work {
    fn enqueue(&mut self, item: String) {
        self.queue.push(item);
    }
}

fn main() {}
