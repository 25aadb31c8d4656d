use pinned::{
    BoxError, Dispatch, Durable, Instance, Json, Persistent, PersistentQueue, PinnedApi,
    PinnedWorker, Tray, TrayHandle, inbox, pinned_api, route,
};

/// What a queue may hold; serde is where `Json` has it from.
trait Entry: Default + Clone + Send + Sync + 'static {
    fn size(&self) -> u64;
}

impl Entry for String {
    fn size(&self) -> u64 {
        self.len() as u64
    }
}

#[derive(Tray)]
struct Sized<E: Entry, const LIMIT: usize> {
    queue: PersistentQueue<u64>,
    #[tray(skip)]
    seen: Vec<E>,
}

#[inbox]
impl<E: Entry, const LIMIT: usize> Sized<E, LIMIT> {
    fn enqueue(&mut self, entry: E) -> Result<(), BoxError> {
        if self.queue.len() >= LIMIT {
            return Err("full".into());
        }
        self.queue.push(entry.size());
        self.seen.push(entry);
        Ok(())
    }
}

#[derive(Durable)]
struct Lane<E: Entry>
where
    E: Sync,
{
    total: Persistent<u64>,
    last: Vec<E>,
}

#[pinned_api]
impl<E: Entry> Lane<E> {
    #[tray(on_open = Self::opened)]
    async fn work(this: Instance<Self>, size: u64, _: Dispatch<Sized<E, 3>>) {
        if let Ok(mut lane) = this.write().await {
            lane.total.update(|total| *total += size);
            lane.last.push(E::default());
        }
    }

    #[tray(map)]
    async fn many(_: Instance<Self>, _: u64, _: Dispatch<Sized<E, 0>>) {}

    async fn opened(_: Instance<Self>, tray: TrayHandle<Sized<E, 3>>) {
        let _ = tray.enqueue(E::default());
    }

    #[route::post("/")]
    async fn post(this: Instance<Self>) -> Json<bool> {
        let tray = this.tray(Self::WORK).await;
        Json(tray.is_ok_and(|tray| tray.enqueue(E::default()).is_ok()))
    }
}

fn main() {
    assert!(Lane::<String>::needs_store());
    assert_eq!(Lane::<String>::TRAYS.len(), 2);
    let _ = PinnedWorker::builder().host::<Lane<String>>("/lanes");
}
