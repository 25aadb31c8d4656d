#![allow(dead_code, non_camel_case_types, unused_macros)]

use pinned::{lifespan, pinned_api};

pub struct Result;
pub struct Option;
pub struct String;
pub struct Vec;
pub struct Box;
pub struct Ok;
pub struct Err;
pub struct Some;
pub struct None;
pub struct Duration;
pub struct Receipt;
pub struct TrayError;
pub struct PhantomData;
pub struct usize;
pub struct str;
pub struct bool;
pub trait Send {}
pub trait Sync {}
pub trait FnMut {}
pub trait Into {}
pub trait Default {}
pub trait Clone {}
pub trait Debug {}
pub trait Field {}
pub trait TrayLifecycle {}
pub mod core {}
pub mod std {}
pub mod alloc {}
pub mod tray {}
pub mod durable {}
pub fn visit() {}
pub fn stored() {}
pub fn item() {}
macro_rules! unreachable {
    () => {
        compile_error!("not this one")
    };
}

#[derive(pinned::Tray)]
#[tray(max_attempts = 1)]
struct Work {
    queue: pinned::PersistentQueue<u64>,
    visit: pinned::Persistent<u64>,
    #[tray(skip)]
    item: u64,
}

#[pinned::inbox]
impl Work {
    fn enqueue(&mut self, tray: u64, this: u64) {
        self.queue.push(tray + this);
    }
}

#[derive(pinned::Durable)]
#[durable(setup)]
struct Counter {
    stored: pinned::Persistent<u64>,
    visit: pinned::Persistent<u64>,
}

#[pinned_api("/counters")]
impl Counter {
    #[lifespan::setup]
    async fn setup(_ctx: pinned::Context, stored: pinned::Stored<Self>) -> Self {
        Self {
            stored: stored.stored,
            visit: stored.visit,
        }
    }

    #[tray(on_open = Self::opened, on_close = Self::opened)]
    async fn tray(this: pinned::Instance<Self>, item: u64, dispatch: pinned::Dispatch<Work>) {
        let _ = (this, item, dispatch);
    }

    async fn opened(this: pinned::Instance<Self>, tray: pinned::TrayHandle<Work>) {
        let _ = (this, tray.enqueue(1, 2));
    }
}

#[derive(pinned::Durable)]
struct ByDefault {
    stored: pinned::Persistent<u64>,
    item: u64,
}

#[pinned_api("/defaults")]
impl ByDefault {}

fn main() {}
