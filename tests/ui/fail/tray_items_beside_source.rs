#![allow(unused)]

use pinned::{BoxError, PersistentQueue, Tray, TraySource};

#[derive(Tray)]
#[tray(source)]
struct Work {
    #[tray(items)]
    queue: PersistentQueue<u64>,
}

impl TraySource for Work {
    type Item = u64;

    fn next(&mut self) -> Result<Option<u64>, BoxError> {
        Ok(None)
    }

    fn ack(&mut self) {}
}

fn main() {}
