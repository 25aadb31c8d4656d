//! Admissions from many threads: T10.5, T9.1, T13.1.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinned::durability::FrontierError;
use pinned::{
    BoxError, Dispatch, HostOptions, Instance, PersistentQueue, PinnedHost, PinnedWorker, Tray,
    TrayError, pinned_api,
};
use serde::{Deserialize, Serialize};

use super::store::Shelf;
use crate::app::{App, pass, spawn};

const SENDERS: u64 = 8;
const ROUNDS: u64 = 150;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Note {
    sender: u64,
    n: u64,
}

#[derive(Tray)]
struct Notes {
    queue: PersistentQueue<Note>,
}

/// What was handled, sender by sender.
#[derive(Clone, Default)]
struct Handled(Arc<Mutex<HashMap<u64, Vec<u64>>>>);

#[derive(Default)]
struct Desk;

#[pinned_api("/desks")]
impl Desk {
    #[tray]
    async fn notes(
        this: Instance<Self>,
        note: Note,
        _dispatch: Dispatch<Notes>,
    ) -> Result<(), BoxError> {
        take_down(&this, note).await
    }

    #[tray(map)]
    async fn piles(
        this: Instance<Self>,
        note: Note,
        _dispatch: Dispatch<Notes>,
    ) -> Result<(), BoxError> {
        take_down(&this, note).await
    }
}

async fn take_down(this: &Instance<Desk>, note: Note) -> Result<(), BoxError> {
    tokio::task::yield_now().await;
    let handled = this.context().state::<Handled>().ok_or("no list")?;
    let mut handled = handled.0.lock();
    let of_sender = handled.entry(note.sender).or_default();
    // Delivered again after an abort, it may have been noted already.
    if !of_sender.contains(&note.n) {
        of_sender.push(note.n);
    }
    Ok(())
}

/// Admits the note, and waits until it is durable. `None` when it was refused, which promises that nothing of it stays.
async fn admit(host: &PinnedHost<Desk>, note: Note) -> Option<()> {
    let desk = host.instance("a").await.ok()?;
    let admitted = if note.sender.is_multiple_of(2) {
        let notes = desk.tray(Desk::NOTES).await.ok()?;
        notes.admit(|notes| notes.queue.push(note)).ok()?
    } else {
        let piles = desk.trays(Desk::PILES).ok()?;
        // Two senders share a pile.
        let pile = (note.sender / 4).to_string();
        let admitted = piles.admit(&pile, |notes| notes.queue.push(note)).await;
        admitted.ok()?
    };
    admitted.await.expect("a close waits for its log");
    Some(())
}

async fn admit_surely(host: PinnedHost<Desk>, note: Note) {
    for _ in 0..20_000 {
        if admit(&host, note).await.is_some() {
            return;
        }
        pass(1).await;
    }
    panic!("never admitted: {note:?}");
}

async fn run(shelf: Shelf, disturb: impl Fn(&PinnedHost<Desk>)) {
    let handled = Handled::default();
    let options = HostOptions::new()
        .namespace("/desks")
        .idle_timeout(Duration::from_millis(5))
        .sweep_interval(Duration::from_millis(1));
    let builder = PinnedWorker::builder()
        .host_with::<Desk>(options)
        .max_concurrent_dispatches(3)
        .state(handled.clone())
        .store(shelf.searched());
    let app = App::start(builder).await;
    let host = || app.worker.hosted::<Desk>().expect("mounted");
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let host = host();
            spawn(async move {
                for n in 0..ROUNDS {
                    admit_surely(host.clone(), Note { sender, n }).await;
                    if n % 10 == sender {
                        pass(8).await;
                    }
                }
            })
        })
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&done);
    let all = spawn(async move {
        for sender in senders {
            sender.await.expect("a sender");
        }
        ended.store(true, Ordering::Release);
    });
    while !done.load(Ordering::Acquire) {
        disturb(&host());
        pass(7).await;
        assert!(
            !all.is_finished() || done.load(Ordering::Acquire),
            "a sender has failed"
        );
    }
    let expected: Vec<u64> = (0..ROUNDS).collect();
    for _ in 0..10_000 {
        if handled.0.lock().values().map(Vec::len).sum::<usize>() as u64 == SENDERS * ROUNDS {
            break;
        }
        pass(1).await;
    }
    let handled = handled.0.lock().clone();
    for sender in 0..SENDERS {
        assert_eq!(handled.get(&sender), Some(&expected), "sender {sender}");
    }
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_when_trays_go_to_rest_and_instances_are_idle() {
    // T10.5, D17.1
    run(Shelf::new(), |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_through_wind_downs() {
    // T16.2, T17.3
    run(Shelf::new(), |host| {
        host.wind_down("a", Some(Duration::from_millis(3)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_without_batches() {
    // S5.3
    run(Shelf::without_batches(), |host| host.wind_down("a", None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn openings_that_end_at_one_moment_leave_nothing_for_the_close_to_wait_for() {
    // T9.10, T9.11
    let options = HostOptions::new().namespace("/desks");
    let builder = PinnedWorker::builder()
        .host_with::<Desk>(options)
        .state(Handled::default())
        .store(Shelf::new());
    let app = App::start(builder).await;
    let host = app.worker.hosted::<Desk>().expect("mounted");
    let desk = host.instance("a").await.expect("live");
    for id in 0..2_000 {
        let askers: Vec<_> = (0..4)
            .map(|_| {
                let piles = desk.trays(Desk::PILES).expect("a store");
                spawn(async move { assert!(piles.get(&format!("nobody {id}")).await.is_err()) })
            })
            .collect();
        for asker in askers {
            asker.await.expect("not found");
        }
    }
    host.abort("a");
    for _ in 0..5_000 {
        if host.is_empty() {
            return app.shutdown().await;
        }
        pass(1).await;
    }
    panic!("the close waits for an opening");
}

#[tokio::test(start_paused = true)]
async fn a_segment_of_one_instance_does_not_wait_for_another() {
    // Two that did so towards each other, on two threads, would hold each other up for ever.
    let app = App::start(
        PinnedWorker::builder()
            .host::<Desk>("/desks")
            .state(Handled::default())
            .store(Shelf::new()),
    )
    .await;
    let host = app.worker.hosted::<Desk>().expect("mounted");
    let (one, other) = (host.instance("a").await, host.instance("b").await);
    let (one, other) = (one.expect("live"), other.expect("live"));
    let notes = one.tray(Desk::NOTES).await.expect("open");
    let elsewhere = other.tray(Desk::NOTES).await.expect("open");
    let pile = one.trays(Desk::PILES).expect("a store");
    let pile = pile.get_or_create("x").await.expect("open");
    let is_refused = |outcome| {
        let within = FrontierError::WithinAnother;
        matches!(outcome, Err(TrayError::Frontier(error)) if error.to_string() == within.to_string())
    };
    let look = || {
        assert!(is_refused(elsewhere.kick().map(drop)));
        assert!(is_refused(elsewhere.read(|_| ())));
        assert!(
            other
                .context()
                .frontier()
                .expect("a store")
                .atomic(|| ())
                .is_err()
        );
        // Another tray of the same instance joins.
        pile.update(|_| ()).expect("the same lock");
        notes.key();
    };
    notes.update(|_| look()).expect("open");
    notes.read(|_| look()).expect("open");
    let frontier = one.context().frontier().expect("a store");
    frontier.atomic(look).expect("open");
    let panics = AssertUnwindSafe(|| notes.update::<()>(|_| panic!("half way")));
    catch_unwind(panics).expect_err("it panicked");
    // Nothing of it is left.
    elsewhere.kick().expect("open").await.expect("durable");
    notes.kick().expect("open").await.expect("durable");
}
