//! Durable writes per second of the store in a file, beside a plain loop on the same disk with the same settings.
//!
//! The loop commits one row per transaction, as fast as one connection can. The store has many writers that each wait
//! for their write, and then a single one.
//!
//! Turns are short and many: the time of a flush may change tenfold from one second to the next.

#![allow(clippy::disallowed_methods, reason = "a bench measures the real clock")]

use std::time::{Duration, Instant};

use bench::{Result, compare::median, options::Options, plain_sqlite::PlainLoop};
use pinned::durability::{Claim, Doc, InstanceKey, SqliteStore, StateStore, TrayKey};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 51)?;
    let turn = options.take_seconds("--seconds", 0.1)?;
    let writers: usize = options.take("--writers", 64)?;
    let folder: String = options.take("--folder", String::from("."))?;
    options.finish()?;

    let folder = tempfile::tempdir_in(folder)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let store = SqliteStore::open(folder.path().join("store.db"))?;
    runtime.block_on(store.setup())?;
    let plain = PlainLoop::open(&runtime, &folder.path().join("plain.db"))?;

    let (mut rates, mut times_many, mut times_one) = ([const { vec![] }; 3], vec![], vec![]);
    // The first round warms up and is not counted.
    for round in 0..=rounds {
        let measured = [
            plain.rate(writers, turn)?,
            store_rate(&runtime, &store, writers, turn)?,
            store_rate(&runtime, &store, 1, turn)?,
        ];
        if round == 0 {
            continue;
        }
        times_many.push(measured[1] / measured[0]);
        times_one.push(measured[2] / measured[0]);
        for (row, value) in rates.iter_mut().zip(measured) {
            row.push(value);
        }
    }
    let names = [
        "plain loop".to_owned(),
        format!("store, {writers} writers"),
        "store, 1 writer".to_owned(),
    ];
    for (name, row) in names.into_iter().zip(rates) {
        println!("  {name:<18} {:>8.0} writes/s", median(row));
    }
    println!("  one writer: {:.2} x the plain loop", median(times_one));
    println!("ratio: {:.3}", median(times_many));
    Ok(())
}

fn store_rate(
    runtime: &Runtime,
    store: &SqliteStore,
    writers: usize,
    turn: Duration,
) -> Result<f64> {
    let doc = Doc::parse(PlainLoop::DOC)?;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for id in 0..writers {
        let id = format!("user-{id:06}");
        let (store, doc) = (store.clone(), doc.clone());
        let claim = Claim::new(InstanceKey::new("/users", id), 1);
        let write = async move {
            let (key, mut writes) = (TrayKey::new("work", "~"), 0_u32);
            while start.elapsed() < turn {
                store
                    .set_tray(claim.clone(), key.clone(), true, doc.clone())
                    .await?;
                writes += 1;
            }
            Ok::<_, pinned::durability::StoreError>(writes)
        };
        tasks.spawn_on(write, runtime.handle());
    }
    let mut writes = 0_u32;
    for written in runtime.block_on(tasks.join_all()) {
        writes += written?;
    }
    Ok(f64::from(writes) / start.elapsed().as_secs_f64())
}
