#![allow(unused)]

use pinned::{inbox, pinned_api};

#[derive(Default)]
struct Lane;

#[pinned_api("/lanes")]
impl Lane {
    #[inbox]
    fn enqueue(&mut self, item: String) {}
}

fn main() {}
