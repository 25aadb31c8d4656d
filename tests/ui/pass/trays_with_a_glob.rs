//! `tray` is a helper of the derive, an attribute in a block, and any name of the user's.

#[allow(unused_imports)]
use pinned::*;

mod tray {
    use pinned::{Persistent, PersistentQueue, Tray};

    #[derive(Tray)]
    #[tray(version = 1)]
    pub struct Work {
        #[tray(items)]
        pub queue: PersistentQueue<u64>,
        #[tray(initial = 1)]
        pub count: Persistent<u64>,
    }
}

#[derive(Tray)]
#[tray(max_attempts = 2)]
struct More {
    #[tray(items)]
    queue: PersistentQueue<u64>,
    #[tray(skip)]
    durable: u64,
}

#[inbox]
impl More {
    fn durable(&mut self, more: u64) {
        self.durable += more;
        self.queue.push(self.durable);
    }
}

#[derive(Durable)]
struct Lane {
    #[durable(initial = 5)]
    tray: Persistent<u64>,
}

#[pinned_api("/lanes")]
impl Lane {
    #[tray]
    async fn tray(_: Instance<Self>, _: u64, dispatch: Dispatch<tray::Work>) {
        let _ = dispatch.read(|work| *work.count + work.queue.len() as u64);
    }

    #[tray]
    async fn more(this: Instance<Self>, _: u64, dispatch: Dispatch<More>) {
        let _ = (this.read().await.map(|lane| *lane.tray), dispatch.durable(1));
    }
}

fn main() {
    let (tray, more) = (Lane::TRAY, Lane::MORE);
    assert_eq!((tray.name(), more.name()), ("tray", "more"));
}
