#![allow(unused)]

use pinned::{Dispatch, Instance, pinned_api};

struct Work;

#[derive(Default)]
struct Lane;

#[pinned_api("/lanes")]
impl Lane {
    #[tray]
    async fn work(this: Instance<Self>, item: u64, dispatch: Dispatch<Work>) {}
}

fn main() {}
