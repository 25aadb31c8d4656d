//! What a receipt confirmed survives any crash: processes of the example `lanes` are killed with SIGKILL at random moments
//! under load, again and again over one store (S9).
//!
//! `PINNED_KILLS` says how often (6 on each store, unless it does); `PINNED_SEED` repeats a run's moments and items.

#![allow(
    clippy::disallowed_methods,
    reason = "processes are killed and watched in real time"
)]

mod load;

use std::process::Command;
use std::time::Duration;

use load::{Lanes, Ledger, Moments};

use crate::process::{Process, example};

/// The lanes that items go to.
const LANES: [&str; 4] = ["north", "east", "south", "west"];

fn kills() -> u32 {
    match std::env::var("PINNED_KILLS") {
        Ok(kills) => kills.parse().expect("PINNED_KILLS is a number"),
        Err(_) => 6,
    }
}

/// Starts a process over the store, and gives where it listens.
fn start(configure: &dyn Fn(&mut Command)) -> (Process, String) {
    let mut command = example("lanes");
    command.env("BIND", "127.0.0.1").env("PORT", "0");
    configure(&mut command);
    let (process, line) = Process::start(command, "serving on ");
    let (_, url) = line
        .split_once("serving on ")
        .expect("the line that was waited for");
    (process, url.trim().to_owned())
}

fn survives(store: &str, configure: &dyn Fn(&mut Command)) {
    let mut moments = Moments::from_environment();
    let mut ledger = Ledger::default();
    for round in 0..kills() {
        let (process, url) = start(configure);
        let lanes = Lanes::new(url);
        let load = lanes.under_load(&mut moments, round);
        std::thread::sleep(moments.until_the_kill());
        // SIGKILL, in the middle of whatever it does.
        drop(process);
        load.join(&mut ledger);
    }
    let (process, url) = start(configure);
    let lanes = Lanes::new(url);
    let executed = lanes.wait_until_idle(Duration::from_secs(60));
    drop(process);
    ledger.check(&executed, kills());
    println!(
        "{store}: {} kills, {} items admitted for certain, {} executed, up to attempt {} (seed {})",
        kills(),
        ledger.admitted(),
        executed.values().map(|lane| lane.len()).sum::<usize>(),
        executed
            .values()
            .flat_map(|lane| lane.values())
            .max()
            .copied()
            .unwrap_or(0),
        moments.seed(),
    );
}

#[test]
fn what_was_admitted_on_sqlite_is_executed_however_often_the_process_is_killed() {
    // S9.3, D15.3, promise 2
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lanes.db");
    survives("SQLite", &|command| {
        command.env("PINNED_STORE", format!("sqlite:{}", path.display()));
    });
}

#[test]
fn what_was_admitted_on_postgresql_is_executed_however_often_the_process_is_killed() {
    // S9.3, D15.3, promise 2
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(pinned_testing::PostgresServer::start());
    let dsn = runtime.block_on(server.create_database());
    survives("PostgreSQL", &|command| {
        command.env("POSTGRES_DSN", &dsn);
    });
}
