//! Store operations that a dispatch costs beyond its admission: items through one tray over a store that counts.
//!
//! The take of an item (its attempts), its acknowledgement and the end of a drain each change the tray's row. Nobody
//! waits for the take, so changes that come while the store is at work reach it together.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::time::{Duration, Instant};

use bench::{
    Result,
    counting::CountingStore,
    options::Options,
    tray_load::{Handling, Mailboxes},
};
use pinned::durability::MemoryStore;
use tokio::runtime::Builder;

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let items: u32 = options.take("--items", 1_000)?;
    let threads: usize = options.take("--threads", 2)?;
    let round_trip = options.take_seconds("--round-trip", 0.001)?;
    options.finish()?;

    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let measure = |handling, round_trip| runtime.block_on(measure(handling, round_trip, items));
    let mut most = 0.0_f64;
    for round_trip in [Duration::ZERO, round_trip] {
        let timed = runtime.block_on(time_of(round_trip));
        println!("a round trip of {:.1} ms:", timed.as_secs_f64() * 1e3);
        for handling in [Handling::Handled, Handling::Slow] {
            let [single, bulk] = measure(handling, round_trip)?;
            let name = handling.name();
            single.print(&format!("{name}, one after the other"));
            bulk.print(&format!("{name}, in bulk"));
            if handling == Handling::Handled {
                most = most.max(single.beyond).max(bulk.beyond);
            }
        }
    }
    println!("ratio: {most:.3}");
    Ok(())
}

/// What a round trip takes: timers are a little late.
async fn time_of(round_trip: Duration) -> Duration {
    const TIMES: u32 = 50;
    let start = Instant::now();
    if !round_trip.is_zero() {
        for _ in 0..TIMES {
            // As the store waits.
            let wait = tokio::spawn(tokio::time::sleep(round_trip));
            let _ = wait.await;
        }
    }
    start.elapsed() / TIMES
}

struct Cost {
    /// Operations per item, without those that made its admission durable.
    beyond: f64,
    /// Until the admission was durable, per item.
    admission: Duration,
    /// From there until the acknowledgement was durable and nothing left to write, per item.
    dispatch: Duration,
}

impl Cost {
    fn print(&self, name: &str) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!(
            "  {name:<30} {:>6.3} operations/item beyond the admission   admission {:>6.0} us, then {:>6.0} us/item",
            self.beyond,
            micros(self.admission),
            micros(self.dispatch),
        );
    }
}

/// One after the other, each from its admission until nothing of it is left to write; then all in one admission.
async fn measure(handling: Handling, round_trip: Duration, items: u32) -> Result<[Cost; 2]> {
    let store = CountingStore::new(MemoryStore::new(), round_trip);
    let counts = store.counts();
    let mailboxes = Mailboxes::start(store).await?;
    let opened = mailboxes.open(handling, "a").await?;
    let per_item = |operations: u64| operations as f64 / f64::from(items);

    let before = counts.operations();
    let (mut admission, mut dispatch) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..items {
        let start = Instant::now();
        opened.admit("item").await?;
        let admitted = Instant::now();
        opened.handled_down_to(0, &counts).await?;
        admission += admitted - start;
        dispatch += admitted.elapsed();
    }
    let single = Cost {
        beyond: per_item(counts.operations() - before) - 1.0,
        admission: admission / items,
        dispatch: dispatch / items,
    };

    let (before, start) = (counts.operations(), Instant::now());
    let texts = (0..items).map(|item| item.to_string());
    let admitted = opened.tray.admit(|inbox| inbox.queue.extend(texts))?;
    admitted.await?;
    let admitted = Instant::now();
    opened.handled_down_to(0, &counts).await?;
    let bulk = Cost {
        beyond: per_item(counts.operations() - before - 1),
        admission: (admitted - start) / items,
        dispatch: admitted.elapsed() / items,
    };
    Ok([single, bulk])
}
