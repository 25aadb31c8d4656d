//! Durable admissions per second over 64 instances on PostgreSQL, beside `pgbench` with as many clients.
//!
//! Both write single rows of the same size into tables of the same shape on one private server with `fsync` on, in turns.
//! Each of the 64 waits for its row to be durable before it writes the next.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bench::{Result, compare::median, options::Options};
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

/// An object whose text has `bytes` bytes.
fn doc_of(bytes: usize) -> Result<Doc> {
    let frame = r#"{"queue":""}"#.len();
    let filling = "x".repeat(bytes.saturating_sub(frame));
    Ok(Doc::parse(format!(r#"{{"queue":"{filling}"}}"#))?)
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

/// `pgbench`, on a table like that of the rows.
struct Pgbench {
    program: PathBuf,
    dsn: String,
    script: PathBuf,
    clients: usize,
    threads: usize,
    protocol: String,
}

impl Pgbench {
    fn new(
        server: &PostgresServer,
        dsn: &str,
        doc: &Doc,
        clients: usize,
        threads: usize,
        protocol: String,
    ) -> Result<Self> {
        const TABLE: &str = "CREATE TABLE pgbench_rows (\
            ns TEXT NOT NULL, id TEXT NOT NULL, tray_ns TEXT NOT NULL, tray_id TEXT NOT NULL, \
            marked BOOLEAN NOT NULL, doc JSONB NOT NULL, env TEXT NOT NULL DEFAULT '*', \
            hostname TEXT NOT NULL DEFAULT '*', PRIMARY KEY (ns, id, tray_ns, tray_id))";
        run(Command::new(server.binary("psql")).args([
            "--no-psqlrc",
            "--quiet",
            "--command",
            TABLE,
            dsn,
        ]))?;
        let script = std::env::temp_dir().join(format!("pinned-bench-{}.sql", std::process::id()));
        // A client is an instance: each has a row of its own.
        let insert = format!(
            "INSERT INTO pgbench_rows (ns, id, tray_ns, tray_id, marked, doc, env, hostname) \
             VALUES ('/bench', :client_id::text, 'inbox', '~', true, '{}', '*', '*') \
             ON CONFLICT (ns, id, tray_ns, tray_id) DO UPDATE SET marked = EXCLUDED.marked, doc = EXCLUDED.doc, \
             env = EXCLUDED.env, hostname = EXCLUDED.hostname;\n",
            doc.as_str()
        );
        fs::write(&script, insert)?;
        Ok(Self {
            program: server.binary("pgbench"),
            dsn: dsn.to_owned(),
            script,
            clients,
            threads,
            protocol,
        })
    }

    /// Rows per second.
    fn rate(&self, turn: Duration) -> Result<f64> {
        let (clients, threads) = (self.clients.to_string(), self.threads.to_string());
        let seconds = turn.as_secs().max(1).to_string();
        let mut command = Command::new(&self.program);
        command
            .args([
                "--no-vacuum",
                "--jobs",
                &threads,
                "--protocol",
                &self.protocol,
            ])
            .args(["--client", &clients, "--time", &seconds, "--file"])
            .arg(&self.script)
            .arg(&self.dsn);
        let report = run(&mut command)?;
        let rate = report
            .lines()
            .find_map(|line| line.strip_prefix("tps = "))
            .and_then(|rest| rest.split_whitespace().next())
            .ok_or("pgbench printed no rate")?;
        Ok(rate.parse()?)
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.script);
    }
}

/// What a program prints.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let program = Path::new(command.get_program()).display().to_string();
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
