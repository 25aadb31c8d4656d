#![deny(
    private_interfaces,
    private_bounds,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    unused,
    nonstandard_style,
    rust_2018_idioms,
    unused_qualifications,
    single_use_lifetimes,
    non_local_definitions,
    clippy::all
)]
#![forbid(unsafe_code)]
//! A crate whose author reads every lint.

use pinned::{
    Context, Dispatch, Durable, Instance, Persistent, PersistentQueue, Stored, Tray, TrayHandle,
    inbox, lifespan, pinned_api,
};

/// Work to do.
#[derive(Debug, Tray)]
#[tray(max_attempts = 2)]
pub struct Work {
    queue: PersistentQueue<String>,
}

#[inbox]
impl Work {
    /// Adds an entry.
    pub fn enqueue(&mut self, entry: String) {
        self.queue.push(entry);
    }
}

/// A public struct.
#[derive(Debug, Durable)]
#[durable(setup)]
pub struct Lane {
    /// How many were done.
    pub done: Persistent<u64>,
    undocumented: Persistent<u64>,
    name: String,
}

#[pinned_api("/lanes")]
impl Lane {
    #[lifespan::setup]
    async fn setup(ctx: Context, stored: Stored<Self>) -> Self {
        Self {
            done: stored.done,
            undocumented: stored.undocumented,
            name: ctx.id().to_owned(),
        }
    }

    /// Works.
    #[tray]
    pub async fn work(this: Instance<Self>, entry: String, dispatch: Dispatch<Work>) {
        let _ = (this, entry, dispatch);
    }

    #[tray(map, on_open = Self::opened)]
    async fn never_named(_: Instance<Self>, _: String, _: Dispatch<Work>) {}

    async fn opened(_: Instance<Self>, _: TrayHandle<Work>) {}

    #[stats]
    fn stats(&self) -> (u64, &str) {
        (*self.done + *self.undocumented, &self.name)
    }
}

mod inner {
    use pinned::{Dispatch, Durable, Instance, Persistent, PersistentQueue, Tray, inbox, pinned_api};

    #[derive(Debug)]
    struct Secret(u64);

    #[derive(Tray)]
    pub(crate) struct Hidden {
        queue: PersistentQueue<u64>,
        #[tray(skip)]
        secret: Option<Secret>,
    }

    #[inbox(trait = Secrets)]
    impl Hidden {
        pub(crate) fn tell(&mut self, number: u64) {
            self.secret = Some(Secret(number));
            self.queue.push(self.secret.as_ref().map_or(0, |secret| secret.0));
        }
    }

    #[inbox]
    impl Hidden {
        fn never_called(&mut self) {}
    }

    #[derive(Durable)]
    pub(crate) struct Keeper {
        pub(crate) count: Persistent<u64>,
    }

    #[pinned_api("/keepers")]
    impl Keeper {
        #[tray]
        pub(crate) async fn keep(this: Instance<Self>, number: u64, _: Dispatch<Hidden>) {
            if let Ok(mut keeper) = this.write().await {
                keeper.count.set(number);
            }
        }

        #[tray]
        async fn private(_: Instance<Self>, _: u64, _: Dispatch<Hidden>) {}
    }
}

fn main() {
    use inner::Secrets as _;
    let _ = async |this: Instance<inner::Keeper>| {
        let tray = this.tray(inner::Keeper::KEEP).await.ok()?;
        tray.tell(1).ok()
    };
    let _ = async |this: Instance<Lane>| {
        let tray = this.tray(Lane::WORK).await.ok()?;
        tray.enqueue(String::new()).ok()
    };
}
