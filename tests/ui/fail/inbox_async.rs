#![allow(unused)]

use pinned::{PersistentQueue, Tray, inbox};

#[derive(Tray)]
struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    async fn enqueue(&mut self, item: String) {
        self.queue.push(item);
    }
}

fn used(work: pinned::TrayHandle<Work>) {
    let _ = work.enqueue(String::new());
}

fn main() {}
