//! What instances did, one line each.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use pinned::lease::Lease;
use serde::Serialize;

/// Where activity is written down. Clones write to the same file.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Mutex<File>>);

#[derive(Serialize)]
struct Line<'a> {
    /// Microseconds since the Unix epoch: all processes of a test share one clock.
    at: u128,
    pid: u32,
    event: &'a str,
    id: &'a str,
    epoch: u64,
    /// How long it took until then, in milliseconds.
    ms: u128,
    /// What was worked on.
    item: &'a str,
}

/// How often a process looks whether it is being run at all.
const BEAT: Duration = Duration::from_millis(20);
/// A pause that is worth a line: a good part of the shortest lease buffer of a test.
const STALL: Duration = Duration::from_millis(200);

impl Activity {
    pub(crate) fn from_environment() -> Result<Self, Box<dyn std::error::Error>> {
        let path = std::env::var("ACTIVITY_LOG")
            .map_err(|_| "ACTIVITY_LOG names the file to append to")?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    pub(crate) fn note(&self, event: &str, id: &str, epoch: u64) {
        self.note_item(event, id, epoch, "");
    }

    pub(crate) fn note_item(&self, event: &str, id: &str, epoch: u64, item: &str) {
        self.write(&Line {
            event,
            id,
            epoch,
            item,
            ..Line::now()
        });
    }

    /// Writes down whenever this process was not run for a while, by a signal or by a machine that had no time for it, and
    /// from when to when its lease had passed.
    #[allow(
        clippy::disallowed_methods,
        reason = "what is measured is the machine, not the worker"
    )]
    pub(crate) fn watch(&self, lease: Lease) {
        let activity = self.clone();
        std::thread::spawn(move || {
            let mut last = Instant::now();
            let mut lapsed = false;
            loop {
                std::thread::sleep(BEAT);
                let gap = last.elapsed();
                if gap > STALL {
                    activity.note_since("stalled", gap);
                }
                let expired = lease.expired();
                match (lapsed, expired) {
                    (false, true) => {
                        let since = lease.expires_at().and_then(|at| at.elapsed().ok());
                        activity.note_since("lapsed", since.unwrap_or_default());
                    }
                    (true, false) => activity.note_since("restored", gap),
                    _ => {}
                }
                lapsed = expired;
                last = Instant::now();
            }
        });
    }

    fn note_since(&self, event: &str, took: Duration) {
        self.write(&Line {
            event,
            ms: took.as_millis(),
            ..Line::now()
        });
    }

    /// Writes a line in one piece, so that a process that is killed leaves no half of one.
    fn write(&self, line: &Line<'_>) {
        let written = serde_json::to_string(line)
            .map_err(io::Error::from)
            .and_then(|line| self.0.lock().write_all((line + "\n").as_bytes()));
        if let Err(error) = written {
            eprintln!("the activity log cannot be written: {error}");
            std::process::abort();
        }
    }
}

impl Line<'_> {
    #[allow(
        clippy::disallowed_methods,
        reason = "lines of several processes are compared by the clock of the machine"
    )]
    fn now() -> Self {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            at: at.unwrap_or_default().as_micros(),
            pid: std::process::id(),
            event: "",
            id: "",
            epoch: 0,
            ms: 0,
            item: "",
        }
    }
}
