use pinned::{
    Dispatch, Durable, Instance, Persistent, PersistentQueue, PinnedApi, Tray, TrayHandle, inbox,
    pinned_api,
};

#[derive(Tray)]
struct Work {
    #[cfg(any())]
    gone: PersistentQueue<DoesNotExist>,
    queue: PersistentQueue<u64>,
    #[cfg_attr(not(any()), tray(skip))]
    cache: u64,
}

#[inbox]
#[cfg(not(any()))]
impl Work {
    #[cfg(any())]
    fn gone(&mut self, number: DoesNotExist) {}

    #[cfg(not(any()))]
    fn there(&mut self, number: u64, #[cfg(any())] gone: DoesNotExist) {
        self.queue.push(number + self.cache);
    }
}

#[cfg(any())]
#[inbox(trait = Gone)]
impl Work {
    fn gone_too(&mut self) {}
}

#[derive(Durable)]
struct Lane {
    #[cfg(any())]
    gone: Persistent<DoesNotExist>,
    done: Persistent<u64>,
}

#[pinned_api("/lanes")]
impl Lane {
    #[cfg(any())]
    #[tray]
    async fn gone(this: Instance<Self>, item: DoesNotExist, dispatch: Dispatch<DoesNotExist>) {}

    #[cfg(not(any()))]
    #[tray]
    async fn kept(_: Instance<Self>, _: u64, _: Dispatch<Work>) {}

    #[cfg_attr(not(any()), tray(map, on_open = Self::opened))]
    async fn sometimes(_: Instance<Self>, _: u64, _: Dispatch<Work>) {}

    #[cfg_attr(any(), tray)]
    #[allow(dead_code)]
    async fn never(_: Instance<Self>, _: u64, _: Dispatch<Work>) {}

    async fn opened(_: Instance<Self>, tray: TrayHandle<Work>) {
        let _ = tray.there(1);
    }

    #[cfg(any())]
    #[tray]
    async fn either(_: Instance<Self>, _: u64, _: Dispatch<DoesNotExist>) {}

    #[cfg(not(any()))]
    #[tray(map)]
    async fn either(_: Instance<Self>, _: u64, _: Dispatch<Work>) {}

    #[stats]
    fn stats(&self) -> u64 {
        *self.done
    }
}

#[derive(Default)]
struct None;

#[pinned_api("/none")]
impl None {
    #[cfg(any())]
    #[tray]
    async fn gone(this: Instance<Self>, item: DoesNotExist, dispatch: Dispatch<DoesNotExist>) {}
}

fn main() {
    let names: Vec<_> = Lane::TRAYS.iter().map(|tray| tray.name()).collect();
    assert_eq!(names, ["kept", "sometimes", "either"]);
    let _ = (Lane::KEPT, Lane::SOMETIMES, Lane::EITHER);
    assert!(!None::needs_store());
}
