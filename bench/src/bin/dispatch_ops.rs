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
        println!("a round trip of {} ms:", round_trip.as_secs_f64() * 1e3);
        for handling in [Handling::Handled, Handling::Slow] {
            let [single, bulk] = measure(handling, round_trip)?;
            let name = handling.name();
            single.print(&format!("{name}, one after the other"), round_trip);
            bulk.print(&format!("{name}, in bulk"), round_trip);
            if handling == Handling::Handled {
                most = most.max(single.beyond).max(bulk.beyond);
            }
        }
    }
    println!("ratio: {most:.3}");
    Ok(())
}

struct Cost {
    /// Operations per item, without those that made its admission durable.
    beyond: f64,
    /// From the call of the admission until the acknowledgement is durable, per item.
    time: Duration,
}

impl Cost {
    fn print(&self, name: &str, round_trip: Duration) {
        let micros = self.time.as_secs_f64() * 1e6;
        print!(
            "  {name:<30} {:>6.3} operations/item beyond the admission   {micros:>7.0} us/item",
            self.beyond
        );
        match round_trip.is_zero() {
            true => println!(),
            false => println!(
                " = {:.2} round trips",
                self.time.as_secs_f64() / round_trip.as_secs_f64()
            ),
        }
    }
}

/// One after the other, each from its admission until nothing of it is left to write; then all in one admission.
async fn measure(handling: Handling, round_trip: Duration, items: u32) -> Result<[Cost; 2]> {
    let store = CountingStore::new(MemoryStore::new(), round_trip);
    let counts = store.counts();
    let mailboxes = Mailboxes::start(store).await?;
    let opened = mailboxes.open(handling, "a").await?;

    let (before, start) = (counts.operations(), Instant::now());
    for _ in 0..items {
        opened.admit("item").await?;
        opened.handled_down_to(0).await?;
    }
    let single = counts.operations() - before - u64::from(items);
    let single = Cost {
        beyond: single as f64 / f64::from(items),
        time: start.elapsed() / items,
    };

    let (before, start) = (counts.operations(), Instant::now());
    let texts = (0..items).map(|item| item.to_string());
    let admitted = opened.tray.admit(|inbox| inbox.queue.extend(texts))?;
    admitted.await?;
    opened.handled_down_to(0).await?;
    let bulk = counts.operations() - before - 1;
    let bulk = Cost {
        beyond: bulk as f64 / f64::from(items),
        time: start.elapsed() / items,
    };
    Ok([single, bulk])
}
