//! Durable admissions per second to trays, beside what the database does by itself: `pgbench` with as many clients on
//! PostgreSQL, a plain loop of one-row transactions on SQLite.
//!
//! Admissions are measured in three ways. *Held*: the items are held back, so that nothing but admissions reaches the store,
//! and the queue grows. *Replaced*: held back as well, each in the place of the one before, so that the row keeps the size
//! of the other side's; the ratio is of these. *Handled*: an empty handler is done with each at once, and its takes and
//! acknowledgements reach the store as well.

use std::time::Duration;

use bench::{
    Result,
    compare::median,
    options::Options,
    pgbench::{Pgbench, doc_of, item_of},
    plain_sqlite::PlainLoop,
    tray_load::{Handling, Mailboxes},
};
use pinned::durability::SqliteStore;
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned_testing::PostgresServer;
use tokio::runtime::{Builder, Runtime};

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let store: String = options.take("--store", "postgres".to_owned())?;
    let instances: usize = options.take("--instances", 64)?;
    // Of this process, and of `pgbench`.
    let threads: usize = options.take("--threads", 2)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    match &*store {
        "postgres" => on_postgres(options, &runtime, instances, threads),
        "sqlite" => on_sqlite(options, &runtime, instances),
        other => Err(format!("no store is called {other:?}; there are postgres, sqlite").into()),
    }
}

fn on_postgres(
    mut options: Options,
    runtime: &Runtime,
    instances: usize,
    threads: usize,
) -> Result<()> {
    let rounds: usize = options.take("--rounds", 5)?;
    let turn = options.take_seconds("--seconds", 2.0)?;
    let doc_bytes: usize = options.take("--doc-bytes", 256)?;
    let protocol: String = options.take("--protocol", "simple".to_owned())?;
    options.finish()?;

    let server = runtime.block_on(PostgresServer::start());
    let dsn = runtime.block_on(server.create_database());
    let doc = doc_of(doc_bytes)?;
    let pgbench = Pgbench::new(&server, &dsn, &doc, instances, threads, protocol)?;
    let store = PostgresStore::from_dsn(&dsn, PostgresOptions::new())?;
    let mut mailboxes = runtime.block_on(Mailboxes::start(store))?;
    let item = item_of(doc_bytes);

    let mut admissions =
        |handling, turn| runtime.block_on(mailboxes.rate(handling, instances, &item, turn));
    let table = rounds_of(rounds, turn, |contender, turn| match contender {
        0 => pgbench.rate(turn),
        1 => admissions(Handling::Replaced, turn),
        2 => admissions(Handling::Held, turn),
        _ => admissions(Handling::Handled, turn),
    })?;
    let [theirs, replaced, held, handled] = table;
    println!("pgbench            {:>8.0} rows/s", median(theirs.clone()));
    print_rows(
        &theirs,
        [
            ("replaced", &replaced),
            ("held", &held),
            ("handled", &handled),
        ],
    );
    println!("ratio: {:.3}", ratio(&replaced, &theirs));
    Ok(())
}

fn on_sqlite(mut options: Options, runtime: &Runtime, instances: usize) -> Result<()> {
    let rounds: usize = options.take("--rounds", 51)?;
    let turn = options.take_seconds("--seconds", 0.1)?;
    let folder: String = options.take("--folder", ".".to_owned())?;
    options.finish()?;

    let folder = tempfile::tempdir_in(folder)?;
    let plain = PlainLoop::open(runtime, &folder.path().join("plain.db"))?;
    let store = SqliteStore::open(folder.path().join("store.db"))?;
    let mut mailboxes = runtime.block_on(Mailboxes::start(store))?;

    let mut admissions = |handling, instances, turn| {
        let item = "the quick brown fox";
        runtime.block_on(mailboxes.rate(handling, instances, item, turn))
    };
    let table = rounds_of(rounds, turn, |contender, turn| match contender {
        0 => plain.rate(instances, turn),
        1 => admissions(Handling::Replaced, instances, turn),
        2 => admissions(Handling::Held, instances, turn),
        3 => admissions(Handling::Handled, instances, turn),
        4 => admissions(Handling::Replaced, 1, turn),
        _ => admissions(Handling::Handled, 1, turn),
    })?;
    let [theirs, replaced, held, handled, one, one_handled] = table;
    println!("plain loop         {:>8.0} rows/s", median(theirs.clone()));
    print_rows(
        &theirs,
        [
            ("replaced", &replaced),
            ("held", &held),
            ("handled", &handled),
            ("one, replaced", &one),
            ("one, handled", &one_handled),
        ],
    );
    println!("ratio: {:.3}", ratio(&replaced, &theirs));
    Ok(())
}

/// The rates of `N` contenders in turns, whose order reverses from round to round. The first round warms up, and is not
/// counted.
fn rounds_of<const N: usize>(
    rounds: usize,
    turn: Duration,
    mut rate: impl FnMut(usize, Duration) -> Result<f64>,
) -> Result<[Vec<f64>; N]> {
    let mut table = [const { Vec::new() }; N];
    for round in 0..=rounds {
        let mut order: Vec<usize> = (0..N).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for contender in order {
            let measured = rate(contender, if round == 0 { turn / 4 } else { turn })?;
            if round > 0 {
                table[contender].push(measured);
            }
        }
    }
    Ok(table)
}

fn print_rows<const N: usize>(theirs: &[f64], rows: [(&str, &Vec<f64>); N]) {
    for (name, row) in rows {
        println!(
            "pinned, {name:<13} {:>6.0} admissions/s   {:>6.2} x",
            median(row.iter().copied()),
            ratio(row, theirs)
        );
    }
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}
