//! The thread that does the work.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::job::{Broken, Job};
use super::queue::{Patience, Queue};
use super::tables::{Opened, Tables};
use super::watch;

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
    let (mut taken, mut group) = (vec![], Group::default());
    let (mut expected, mut took) = (1, Duration::ZERO);
    loop {
        let mut patience = Patience::with(expected, took);
        queue.take(&mut taken, &mut patience);
        if taken.is_empty() {
            return;
        }
        // Those of the last flush are mostly back for the next. What has come is done while the others are on their way.
        loop {
            group.run_all(tables, &mut taken);
            let missing = expected.min(MOST_OPS).saturating_sub(group.jobs.len());
            // Where none is left the transaction has broken off or was never begun, or all of them were abandoned.
            if missing == 0 || group.jobs.is_empty() {
                break;
            }
            queue.take_more(&mut taken, missing, &mut patience);
            if taken.is_empty() {
                break;
            }
        }
        expected = group.jobs.len().max(1);
        let began = watch::now();
        group.end(tables);
        took = watch::now() - began;
    }
}

/// Operations that share a transaction.
#[derive(Default)]
struct Group {
    /// Those that it has done, and whom their callers wait for.
    jobs: Vec<Box<dyn Job>>,
    bytes: usize,
}

impl Group {
    fn has_room_for(&self, job: &dyn Job) -> bool {
        self.jobs.is_empty()
            || (self.jobs.len() < MOST_OPS && self.bytes + job.bytes() <= MOST_BYTES)
    }

    /// Does all of `jobs` that somebody waits for. A group that is full is committed, and the next begins.
    fn run_all(&mut self, tables: &Tables<'_>, jobs: &mut Vec<Box<dyn Job>>) {
        let mut jobs = jobs.drain(..);
        while let Some(job) = jobs.next() {
            if job.is_abandoned() {
                continue;
            }
            if !self.has_room_for(&*job) {
                self.end(tables);
            }
            if let Err(broken) = self.run(tables, job) {
                refuse(jobs.by_ref(), broken);
            }
        }
    }

    /// Does `job` in the transaction of the group, which the first one begins. Where it breaks the transaction, for all that
    /// is known by a damage that only it has met, each gets one of its own.
    ///
    /// # Errors
    ///
    /// No transaction could be begun, as `job` has been told. The next to try would wait for the file just as long.
    fn run(&mut self, tables: &Tables<'_>, mut job: Box<dyn Job>) -> Result<(), Broken> {
        if self.jobs.is_empty()
            && let Err(error) = tables.begin()
        {
            tables.roll_back();
            let broken = Broken::from(error);
            job.answer(&Err(broken.clone()));
            return Err(broken);
        }
        let outcome = job.run(tables);
        self.bytes += job.bytes();
        self.jobs.push(job);
        let Err(error) = outcome else {
            return Ok(());
        };
        tables.roll_back();
        let broken = Broken::from(error);
        self.bytes = 0;
        let mut jobs = std::mem::take(&mut self.jobs);
        if jobs.len() > 1 {
            let mut jobs = jobs.into_iter();
            while let Some(job) = jobs.next() {
                let mut alone = Self::default();
                if let Err(broken) = alone.run(tables, job) {
                    refuse(jobs, broken.clone());
                    return Err(broken);
                }
                alone.end(tables);
            }
        } else if let Some(job) = jobs.pop() {
            job.answer(&Err(broken));
        }
        Ok(())
    }

    /// Commits, and answers.
    fn end(&mut self, tables: &Tables<'_>) {
        if self.jobs.is_empty() {
            return;
        }
        self.bytes = 0;
        let committed = tables.commit();
        if committed.is_err() {
            tables.roll_back();
        }
        let committed = committed.map_err(Broken::from);
        for job in self.jobs.drain(..) {
            job.answer(&committed);
        }
    }
}

/// Answers those whose turn does not come.
fn refuse(jobs: impl Iterator<Item = Box<dyn Job>>, broken: Broken) {
    let broken = Err(broken);
    for job in jobs {
        job.answer(&broken);
    }
}
