#![no_implicit_prelude]

use ::pinned::{Durable, Tray, inbox, lifespan, pinned_api};

#[derive(Tray)]
#[tray(version = 2, dispatch_timeout = "5s", lifecycle)]
struct Work {
    queue: ::pinned::PersistentQueue<u64>,
    #[tray(initial = 7)]
    number: ::pinned::Persistent<u64>,
    sending: ::pinned::PersistentOutbox<u64>,
    #[tray(skip)]
    cache: u64,
}

impl ::pinned::TrayLifecycle for Work {
    async fn opened(
        tray: ::pinned::TrayHandle<Self>,
    ) -> ::core::result::Result<(), ::pinned::BoxError> {
        let _ = tray;
        ::core::result::Result::Ok(())
    }
}

#[inbox]
impl Work {
    fn enqueue(&mut self, number: u64, tray: u64) -> ::core::result::Result<(), ::pinned::BoxError> {
        self.cache = number + tray + *self.number + self.sending.attempt();
        self.queue.push(self.cache);
        ::core::result::Result::Ok(())
    }
}

#[derive(Durable)]
struct Lane {
    done: ::pinned::Persistent<u64>,
    seen: u64,
}

#[pinned_api("/lanes")]
impl Lane {
    #[tray(on_open = Self::opened)]
    async fn work(this: ::pinned::Instance<Self>, item: u64, dispatch: ::pinned::Dispatch<Work>) {
        let _ = (this, item, dispatch.enqueue(item, item));
    }

    #[tray(map, always_open)]
    async fn many(
        _: ::pinned::Instance<Self>,
        _: u64,
        _: ::pinned::Dispatch<Work>,
    ) -> ::core::result::Result<(), ::pinned::BoxError> {
        ::core::result::Result::Ok(())
    }

    async fn opened(_: ::pinned::Instance<Self>, _: ::pinned::TrayHandle<Work>) {}

    #[stats]
    fn stats(&self) -> u64 {
        *self.done + self.seen
    }
}

#[derive(Durable)]
#[durable(setup)]
struct Account {
    balance: ::pinned::Persistent<u64>,
}

#[pinned_api("/accounts")]
impl Account {
    #[lifespan::setup]
    async fn setup(_ctx: ::pinned::Context, stored: ::pinned::Stored<Self>) -> Self {
        Self {
            balance: stored.balance,
        }
    }

    #[stats]
    fn stats(&self) -> u64 {
        *self.balance
    }
}

fn main() {}
