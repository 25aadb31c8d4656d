//! Durable rows per second of the store itself, over 64 instances on PostgreSQL, beside `pgbench` with as many clients.
//!
//! Both write single rows of the same size into tables of the same shape on one private server with `fsync` on, in turns.
//! Each of the 64 waits for its row to be durable before it writes the next.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::time::{Duration, Instant};

use bench::{
    Result,
    compare::median,
    options::Options,
    pgbench::{Pgbench, doc_of},
};
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
use pinned_testing::PostgresServer;

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 5)?;
    let seconds = options.take_seconds("--seconds", 5.0)?;
    let instances: usize = options.take("--instances", 64)?;
    let doc_bytes: usize = options.take("--doc-bytes", 256)?;
    // Of this process, and of `pgbench`.
    let threads: usize = options.take("--threads", 2)?;
    // What `pgbench` does unless told otherwise; `prepared` is the fastest that it does.
    let protocol: String = options.take("--protocol", "simple".to_owned())?;
    options.finish()?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let server = runtime.block_on(PostgresServer::start());
    let dsn = runtime.block_on(server.create_database());
    let store = PostgresStore::from_dsn(&dsn, PostgresOptions::new())?;
    let doc = doc_of(doc_bytes)?;
    let pgbench = Pgbench::new(&server, &dsn, &doc, instances, threads, protocol)?;
    runtime.block_on(store.setup())?;

    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    // The first round makes the rows, and is not counted.
    for round in 0..=rounds {
        let turn = if round == 0 { seconds / 4 } else { seconds };
        let (their_rate, our_rate) = if round % 2 == 0 {
            let their_rate = pgbench.rate(turn)?;
            (
                their_rate,
                runtime.block_on(rate(&store, instances, &doc, turn))?,
            )
        } else {
            let our_rate = runtime.block_on(rate(&store, instances, &doc, turn))?;
            (pgbench.rate(turn)?, our_rate)
        };
        if round == 0 {
            continue;
        }
        println!(
            "pgbench {their_rate:>8.0} rows/s   pinned {our_rate:>8.0} rows/s   {:>5.2} x",
            our_rate / their_rate
        );
        theirs.push(their_rate);
        ours.push(our_rate);
    }
    let ratio = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs));
    println!("pgbench: {:.0} rows/s", median(theirs));
    println!("pinned: {:.0} rows/s", median(ours));
    println!("ratio: {ratio:.3}");
    Ok(())
}

/// Admissions per second: `instances` tasks, each with one write on its way.
async fn rate(store: &PostgresStore, instances: usize, doc: &Doc, turn: Duration) -> Result<f64> {
    let start = Instant::now();
    let end = start + turn;
    let tasks: Vec<_> = (0..instances)
        .map(|instance| {
            let (store, doc) = (store.clone(), doc.clone());
            tokio::spawn(async move {
                let claim = Claim::new(InstanceKey::new("/bench", instance.to_string()), 1);
                let mut admitted = 0_u64;
                while Instant::now() < end {
                    let key = TrayKey::new("inbox", "~");
                    store
                        .set_tray(claim.clone(), key, true, doc.clone())
                        .await?;
                    admitted += 1;
                }
                Ok::<_, pinned::durability::StoreError>(admitted)
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await??;
    }
    Ok(admitted as f64 / start.elapsed().as_secs_f64())
}
