//! Work that comes while the pump looks for the last time.

use pinned::{
    BoxError, Dispatch, Instance, Persistent, PersistentQueue, PinnedWorker, Tray, TraySource,
    pinned_api,
};

use crate::app::{App, settle, spawn};

/// Says once that there is nothing, and then that there is: as if work had come between the pump's two looks.
#[derive(Tray)]
#[tray(source)]
struct Late {
    done: Persistent<bool>,
    #[tray(skip)]
    asked: bool,
}

impl TraySource for Late {
    type Item = ();

    fn next(&mut self) -> Result<Option<()>, BoxError> {
        let asked = std::mem::replace(&mut self.asked, true);
        Ok((asked && !*self.done).then_some(()))
    }

    fn ack(&mut self) {
        self.done.set(true);
    }
}

#[derive(Tray)]
struct Mail {
    letters: PersistentQueue<u64>,
    sent: Persistent<u64>,
}

#[derive(Default)]
struct Office;

#[pinned_api]
impl Office {
    #[tray]
    async fn late(_this: Instance<Self>, _item: (), _dispatch: Dispatch<Late>) {}

    #[tray]
    async fn mail(
        _this: Instance<Self>,
        _letter: u64,
        dispatch: Dispatch<Mail>,
    ) -> Result<(), BoxError> {
        dispatch.update(|mail| mail.sent.update(|sent| *sent += 1))?;
        Ok(())
    }
}

async fn office() -> (App, Instance<Office>) {
    let store = pinned::durability::MemoryStore::new();
    let builder = PinnedWorker::builder().host::<Office>("/offices");
    let app = App::start(builder.store(store)).await;
    let host = app.worker.hosted::<Office>().expect("mounted");
    let office = host.instance("a").await.expect("live");
    (app, office)
}

#[tokio::test(start_paused = true)]
async fn work_that_comes_between_two_looks_of_the_pump_is_not_left_lying() {
    // T10.5
    let (_app, office) = office().await;
    settle().await;
    let late = office.tray(Office::LATE).await.expect("open");
    assert!(late.read(|late| *late.done).expect("open"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_letter_is_sent_whenever_it_comes() {
    // T10.5: a letter at a time, so that the pump looks for the last time again and again.
    let (_app, office) = office().await;
    let mail = office.tray(Office::MAIL).await.expect("open");
    let senders = (0..4).map(|_| {
        let mail = mail.clone();
        spawn(async move {
            for n in 0..500 {
                let admitted = mail.admit(|mail| mail.letters.push(n)).expect("open");
                admitted.await.expect("durable");
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.expect("sent");
    }
    while mail.read(|mail| *mail.sent).expect("open") < 2_000 {
        tokio::task::yield_now().await;
    }
}
