//! `pgbench` as the measure of what a PostgreSQL does by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pinned::durability::Doc;
use pinned_testing::PostgresServer;

use crate::Result;

/// The row of a tray with one queued item, whose text has `bytes` bytes.
///
/// # Errors
/// None that can happen: it is an object.
pub fn doc_of(bytes: usize) -> Result<Doc> {
    let item = item_of(bytes);
    Ok(Doc::parse(format!(r#"{{"queue":["{item}"]}}"#))?)
}

/// The item of [`doc_of`].
pub fn item_of(bytes: usize) -> String {
    let frame = r#"{"queue":[""]}"#.len();
    "x".repeat(bytes.saturating_sub(frame))
}

/// `pgbench`, on a table like that of the rows.
pub struct Pgbench {
    program: PathBuf,
    dsn: String,
    script: PathBuf,
    clients: usize,
    threads: usize,
    protocol: String,
}

impl Pgbench {
    /// Makes the table in the database `dsn` of `server`, and writes `doc` to a row per client from then on.
    ///
    /// # Errors
    /// When the table cannot be made, or the script cannot be written.
    pub fn new(
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
    ///
    /// # Errors
    /// When `pgbench` cannot be run, or fails.
    pub fn rate(&self, turn: Duration) -> Result<f64> {
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
