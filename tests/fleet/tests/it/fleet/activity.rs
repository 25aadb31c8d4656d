//! What the workers wrote down, and what the rig wrote down about their processes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Line {
    /// Microseconds since the Unix epoch: all processes share one clock.
    pub(super) at: u64,
    pub(super) pid: u32,
    pub(super) event: Event,
    /// The instance; empty where the whole process is meant.
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) epoch: u64,
    /// How long it took until then, in milliseconds.
    #[serde(default)]
    pub(super) ms: u64,
    /// What was worked on.
    #[serde(default)]
    pub(super) item: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Event {
    /// An instance was set up.
    Start,
    /// A request was let in, and its handler runs.
    Run,
    /// An item of a tray is being delivered.
    Deliver,
    /// An instance was torn down.
    End,
    /// The store refused a write that this process tried under this epoch.
    Refused,
    /// The process was not run for a while, as it found out afterwards.
    Stalled,
    /// The lease of the worker had passed that long before this line, and it serves nobody (H3.2, W17.3).
    Lapsed,
    /// It has a lease again; that long before it had none yet.
    Restored,
    /// The process is about to be stopped.
    Stopped,
    /// The process was told to go on.
    Continued,
    /// The process has ended, one way or another.
    Died,
    /// Something that no rule is about.
    #[serde(other)]
    Other,
}

/// Everything that was written down, in the order of the clock.
pub(super) fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<Line> = text
        .lines()
        // A process may have been killed in the middle of its last line.
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    lines.sort_by_key(|line| line.at);
    lines
}

/// Writes down what is done to processes, beside what they write themselves.
#[derive(Clone)]
pub(super) struct Witness(PathBuf);

impl Witness {
    pub(super) fn new(log: PathBuf) -> Self {
        Self(log)
    }

    pub(super) fn note(&self, event: Event, pid: u32) {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let line = Line {
            at: u64::try_from(at.expect("after 1970").as_micros()).expect("before 586524"),
            pid,
            event,
            id: String::new(),
            epoch: 0,
            ms: 0,
            item: String::new(),
        };
        let line = serde_json::to_string(&line).expect("plain fields") + "\n";
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the activity log takes a line");
    }
}
