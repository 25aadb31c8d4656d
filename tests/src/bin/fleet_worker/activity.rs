//! What instances did, one line each.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
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
}

impl Activity {
    pub(crate) fn from_environment() -> Result<Self, Box<dyn std::error::Error>> {
        let path = std::env::var("ACTIVITY_LOG")
            .map_err(|_| "ACTIVITY_LOG names the file to append to")?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Writes a line in one piece, so that a process that is killed leaves no half of one.
    #[allow(
        clippy::disallowed_methods,
        reason = "lines of several processes are compared by the clock of the machine"
    )]
    pub(crate) fn note(&self, event: &str, id: &str, epoch: u64) {
        let at = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let line = Line {
            at: at.as_micros(),
            pid: std::process::id(),
            event,
            id,
            epoch,
        };
        let written = serde_json::to_string(&line)
            .map_err(io::Error::from)
            .and_then(|line| self.0.lock().write_all((line + "\n").as_bytes()));
        if let Err(error) = written {
            eprintln!("the activity log cannot be written: {error}");
            std::process::abort();
        }
    }
}
