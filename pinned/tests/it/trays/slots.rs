//! The slots for dispatches: one pool for all that a worker hosts (W1.7, T11.1).

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::{
    BoxError, Dispatch, HostOptions, Instance, PersistentQueue, PinnedWorker, Tray, pinned_api,
};

use super::store::Shelf;
use crate::app::{App, Gate, settle};

#[derive(Tray)]
struct Queue {
    texts: PersistentQueue<String>,
}

/// What has begun, in order, and the gate that all wait for.
#[derive(Clone)]
struct Begun(Arc<Mutex<Vec<String>>>, Gate);

impl Begun {
    async fn work(&self, item: String) {
        self.0.lock().push(item);
        self.1.pass().await;
    }
}

#[derive(Default)]
struct Desk;

#[pinned_api]
impl Desk {
    #[tray]
    async fn queue(
        this: Instance<Self>,
        item: String,
        _dispatch: Dispatch<Queue>,
    ) -> Result<(), BoxError> {
        let begun = this.context().state::<Begun>().expect("it is set");
        begun.work(item).await;
        Ok(())
    }
}

#[derive(Default)]
struct Press;

#[pinned_api]
impl Press {
    #[tray]
    async fn queue(
        this: Instance<Self>,
        item: String,
        _dispatch: Dispatch<Queue>,
    ) -> Result<(), BoxError> {
        let begun = this.context().state::<Begun>().expect("it is set");
        begun.work(item).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn all_hosts_of_a_worker_share_the_slots() {
    // W1.7, T11.1
    let begun = Begun(Arc::default(), Gate::closed());
    let builder = PinnedWorker::builder()
        .host_with::<Desk>(HostOptions::new().namespace("/desks"))
        .host_with::<Press>(HostOptions::new().namespace("/presses"))
        .max_concurrent_dispatches(1)
        .state(begun.clone())
        .store(Shelf::new());
    let app = App::start(builder).await;
    let desk = app.worker.hosted::<Desk>().expect("hosted");
    let desk = desk.instance("a").await.expect("it activates");
    let press = app.worker.hosted::<Press>().expect("hosted");
    let press = press.instance("a").await.expect("it activates");
    let one = desk.tray(Desk::QUEUE).await.expect("a tray");
    let other = press.tray(Press::QUEUE).await.expect("a tray");
    let _ = one
        .admit(|queue| queue.texts.push("desk".to_owned()))
        .expect("it is open");
    settle().await;
    let _ = other
        .admit(|queue| queue.texts.push("press".to_owned()))
        .expect("it is open");
    settle().await;
    assert_eq!(
        *begun.0.lock(),
        ["desk"],
        "the other host waits for the slot"
    );
    begun.1.open();
    settle().await;
    assert_eq!(*begun.0.lock(), ["desk", "press"]);
}
