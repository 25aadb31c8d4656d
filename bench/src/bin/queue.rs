//! What an admission and an acknowledgement cost at three lengths of one queue on SQLite: time and text written.
//!
//! A queue of each length stands in an instance of its own. In turns, one item is admitted to it and one is
//! acknowledged, so that it keeps its length, and each is timed until it is durable.

#![allow(clippy::disallowed_methods, reason = "a bench measures the real clock")]

use std::time::{Duration, Instant};

use bench::{
    Result,
    compare::median,
    counting::{CountingStore, Counts},
    options::Options,
    tray_load::{Handling, Mailboxes, Opened},
};
use pinned::durability::SqliteStore;
use tokio::runtime::Builder;

const LENGTHS: [usize; 3] = [10, 1_000, 100_000];
/// What is queued: a few words, as a job would name what it is about.
const ITEM: &str = "the quick brown fox jumps over the lazy dog";

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 500)?;
    let threads: usize = options.take("--threads", 2)?;
    let folder: String = options.take("--folder", ".".to_owned())?;
    options.finish()?;

    let folder = tempfile::tempdir_in(folder)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let tables = runtime.block_on(async {
        let store = SqliteStore::open(folder.path().join("store.db"))?;
        let store = CountingStore::new(store, Duration::ZERO);
        let counts = store.counts();
        let mailboxes = Mailboxes::start(store).await?;
        let mut queues = Vec::new();
        for length in LENGTHS {
            let opened = mailboxes.open(Handling::Held, &length.to_string()).await?;
            let items = (0..length).map(|_| ITEM.to_owned());
            opened
                .tray
                .admit(|inbox| inbox.queue.extend(items))?
                .await?;
            queues.push((length, opened));
        }
        measure(&queues, &counts, rounds).await
    })?;

    let mut most = 0.0_f64;
    for (name, table) in ["admission", "acknowledgement"].iter().zip(&tables) {
        for (length, row) in LENGTHS.iter().zip(table) {
            let micros = row.seconds() * 1e6;
            println!(
                "{name:<16} at {length:>7} {micros:>7.0} us   {:>6.0} bytes in {:.2} operations",
                row.bytes(),
                row.operations()
            );
        }
        let [shortest, .., longest] = &table[..] else {
            return Err("three lengths give three rows".into());
        };
        // Turn by turn: what a flush takes changes in between.
        let time = median(
            longest
                .times
                .iter()
                .zip(&shortest.times)
                .map(|(l, s)| l / s),
        );
        let bytes = longest.bytes() / shortest.bytes();
        println!("{name:<16} longest / shortest: {time:.2} in time, {bytes:.2} in bytes");
        most = most.max(time);
    }
    println!("ratio: {most:.3}");
    Ok(())
}

#[derive(Default)]
struct Row {
    /// In seconds.
    times: Vec<f64>,
    bytes: u64,
    operations: u64,
}

impl Row {
    fn seconds(&self) -> f64 {
        median(self.times.iter().copied())
    }

    /// On average: every so often a chunk of the queue is written or removed.
    fn bytes(&self) -> f64 {
        self.bytes as f64 / self.times.len() as f64
    }

    fn operations(&self) -> f64 {
        self.operations as f64 / self.times.len() as f64
    }
}

/// Of admissions and of acknowledgements, a row for each length.
async fn measure(
    queues: &[(usize, Opened)],
    counts: &Counts,
    rounds: usize,
) -> Result<[Vec<Row>; 2]> {
    let rows = || queues.iter().map(|_| Row::default()).collect::<Vec<_>>();
    let mut tables = [rows(), rows()];
    for _ in 0..rounds {
        for (index, (length, opened)) in queues.iter().enumerate() {
            let sample = Sample::begin(counts);
            opened.admit(ITEM).await?;
            sample.end(&mut tables[0][index]);

            let sample = Sample::begin(counts);
            opened.step().await?;
            opened.handled_down_to(*length, counts).await?;
            sample.end(&mut tables[1][index]);
        }
    }
    Ok(tables)
}

struct Sample<'a> {
    counts: &'a Counts,
    start: Instant,
    bytes: u64,
    operations: u64,
}

impl<'a> Sample<'a> {
    fn begin(counts: &'a Counts) -> Self {
        Self {
            counts,
            start: Instant::now(),
            bytes: counts.bytes(),
            operations: counts.operations(),
        }
    }

    fn end(self, row: &mut Row) {
        row.times.push(self.start.elapsed().as_secs_f64());
        row.bytes += self.counts.bytes() - self.bytes;
        row.operations += self.counts.operations() - self.operations;
    }
}
