#![allow(unused)]

use pinned::{Dispatch, Instance, Persistent, Tray, pinned_api};

#[derive(Tray)]
struct Work {
    done: Persistent<u64>,
}

#[derive(Default)]
struct Lane;

#[pinned_api("/lanes")]
impl Lane {
    #[tray]
    async fn work(this: Instance<Self>, (): (), dispatch: Dispatch<Work>) {
        let _ = (this, dispatch);
    }
}

fn main() {}
