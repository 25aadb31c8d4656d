//! What a server says, and what is known of it from that.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What is shown of the log when the server does not do as it should.
const LINES: usize = 40;
/// A server that says nothing for as long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The log of a server's present run.
pub(super) struct Log {
    /// Texts by which the server tells its state.
    marks: &'static [&'static str],
    /// The line after the last one of a run.
    end: &'static str,
    run: Mutex<Run>,
    changed: Condvar,
}

struct Run {
    process: Option<u32>,
    ended: bool,
    /// Which of the marks was said last.
    mark: Option<usize>,
    tail: VecDeque<String>,
}

impl Log {
    pub(super) fn new(marks: &'static [&'static str], end: &'static str) -> Self {
        Self {
            marks,
            end,
            run: Mutex::new(Run {
                process: None,
                ended: true,
                mark: None,
                tail: VecDeque::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// A run is about to start.
    pub(super) fn expect_run(&self) {
        let mut run = self.run.lock();
        run.ended = false;
        run.mark = None;
        run.tail.clear();
    }

    /// The run has this process; it may have ended already.
    pub(super) fn runs_as(&self, process: u32) {
        let mut run = self.run.lock();
        run.process = (!run.ended).then_some(process);
    }

    pub(super) fn process(&self) -> Option<u32> {
        self.run.lock().process
    }

    pub(super) fn is_running(&self) -> bool {
        !self.run.lock().ended
    }

    /// Blocks until the server has said any of its marks.
    pub(super) fn wait_for_any_mark(&self) -> Result<(), Failure> {
        self.wait_until(|run| !run.ended && run.mark.is_some())
    }

    /// Blocks until the mark of this index is what the server has said last.
    pub(super) fn wait_for_mark(&self, mark: usize) -> Result<(), Failure> {
        self.wait_until(|run| !run.ended && run.mark == Some(mark))
    }

    /// Blocks until the run has ended and every process of it is gone.
    pub(super) fn wait_for_end(&self) -> Result<(), Failure> {
        self.wait_until(|run| run.ended)
    }

    fn wait_until(&self, reached: impl Fn(&Run) -> bool) -> Result<(), Failure> {
        let mut run = self.run.lock();
        // What an ended run has not reached it never will.
        self.changed
            .wait_while_for(&mut run, |run| !run.ended && !reached(run), PATIENCE);
        if reached(&run) {
            return Ok(());
        }
        Err(Failure {
            ended: run.ended,
            tail: Vec::from(run.tail.clone()).join("\n"),
        })
    }

    /// Reads to the end: a server whose log nobody reads would stand still one day.
    pub(super) fn follow(&self, from: impl Read) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            self.take(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
        self.take(self.end);
    }

    fn take(&self, line: &str) {
        let mut run = self.run.lock();
        if line == self.end {
            run.ended = true;
            run.process = None;
            self.changed.notify_all();
            return;
        }
        if let Some(mark) = self.marks.iter().position(|mark| line.contains(mark)) {
            run.mark = Some(mark);
            self.changed.notify_all();
        }
        if run.tail.len() == LINES {
            run.tail.pop_front();
        }
        run.tail.push_back(line.to_owned());
    }
}

/// A server has not done what was waited for.
pub(crate) struct Failure {
    ended: bool,
    tail: String,
}

impl Failure {
    /// Somebody else has taken a port between the look for a free one and the server's start.
    pub(super) fn is_port_taken(&self) -> bool {
        self.ended && self.tail.contains("Address already in use")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ended {
            write!(f, "it ended:\n{}", self.tail)
        } else {
            let seconds = PATIENCE.as_secs();
            write!(f, "nothing for {seconds} s:\n{}", self.tail)
        }
    }
}
