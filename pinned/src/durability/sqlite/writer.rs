//! The thread that does the work.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::job::{Broken, Job};
use super::queue::Queue;
use super::tables::{Opened, Tables};

/// What one transaction carries at most: enough to make the flush cheap, and few enough to keep the first from waiting
/// for the last.
const MOST_OPS: usize = 1_024;
const MOST_BYTES: usize = 8 << 20;

/// Starts the thread, which ends when `queue` is closed and empty.
pub(super) fn start(queue: Arc<Queue>, opened: Opened) -> io::Result<JoinHandle<()>> {
    Builder::new()
        .name("pinned-sqlite".to_owned())
        .spawn(move || {
            // However it ends, nobody waits for it.
            let _abandon = AbandonOnDrop(&queue);
            work(&queue, &Tables::of(&opened));
        })
}

struct AbandonOnDrop<'a>(&'a Queue);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn work(queue: &Queue, tables: &Tables<'_>) {
    let (mut taken, mut group, mut expected) = (vec![], vec![], 0_usize);
    loop {
        queue.take(&mut taken, expected);
        if taken.is_empty() {
            return;
        }
        let mut bytes = 0;
        expected = taken.len().min(MOST_OPS);
        for job in taken.drain(..) {
            if job.is_abandoned() {
                continue;
            }
            if group.len() == MOST_OPS || (bytes + job.bytes() > MOST_BYTES && !group.is_empty()) {
                commit(tables, &mut group);
                bytes = 0;
            }
            bytes += job.bytes();
            group.push(job);
        }
        commit(tables, &mut group);
    }
}

/// Commits all of `group` at once, and answers. Where one of them breaks the transaction, for all that is known by a
/// damage that only it has met, each gets one of its own.
fn commit(tables: &Tables<'_>, group: &mut Vec<Box<dyn Job>>) {
    if group.is_empty() {
        return;
    }
    match transact(tables, group) {
        Outcome::Ended(committed) => {
            for job in group.drain(..) {
                job.answer(&committed);
            }
        }
        Outcome::BrokenOff(broken) if group.len() == 1 => {
            for job in group.drain(..) {
                job.answer(&Err(broken.clone()));
            }
        }
        Outcome::BrokenOff(_) => {
            for job in std::mem::take(group) {
                commit(tables, &mut vec![job]);
            }
        }
    }
}

enum Outcome {
    /// Committed, or tried to.
    Ended(Result<(), Broken>),
    /// One of the operations failed, and nothing happened.
    BrokenOff(Broken),
}

fn transact(tables: &Tables<'_>, group: &mut [Box<dyn Job>]) -> Outcome {
    if let Err(error) = tables.begin() {
        tables.roll_back();
        return Outcome::Ended(Err(error.into()));
    }
    for job in group {
        if let Err(error) = job.run(tables) {
            tables.roll_back();
            return Outcome::BrokenOff(error.into());
        }
    }
    let committed = tables.commit();
    if committed.is_err() {
        tables.roll_back();
    }
    Outcome::Ended(committed.map_err(Broken::from))
}
