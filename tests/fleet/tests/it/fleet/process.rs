//! Processes that are killed, stopped and waited for by their ids.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::activity::{Event, Witness};

/// A process of a fleet. Dropping it kills it.
pub(super) struct Running {
    child: Child,
    /// A stopped process takes no signal but SIGKILL before it goes on.
    stopped: bool,
    dead: bool,
    witness: Option<Witness>,
}

impl Running {
    /// Starts `command`, with what it says in `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Self {
        let out = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log file");
        let err = out.try_clone().expect("a second handle");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("{:?} does not start: {error}", command.get_program()));
        Self {
            child,
            stopped: false,
            dead: false,
            witness: None,
        }
    }

    /// The same, with what is done to it written down.
    pub(super) fn start_watched(command: Command, log: &Path, witness: Witness) -> Self {
        let mut running = Self::start(command, log);
        running.witness = Some(witness);
        running
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.died();
    }

    pub(super) fn stop(&mut self) {
        self.note(Event::Stopped);
        self.signal("-STOP");
        self.stopped = true;
    }

    pub(super) fn go_on(&mut self) {
        self.signal("-CONT");
        self.note(Event::Continued);
        self.stopped = false;
    }

    pub(super) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.child.try_wait().expect("a child of ours");
        if ended.is_some() {
            self.died();
        }
        ended
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended_within(&mut self, patience: Duration) -> ExitStatus {
        let deadline = std::time::Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "process {} still runs after {patience:?}",
                self.pid()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn died(&mut self) {
        if !std::mem::replace(&mut self.dead, true) {
            self.note(Event::Died);
        }
    }

    fn note(&self, event: Event) {
        if let Some(witness) = &self.witness {
            witness.note(event, self.pid());
        }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.pid().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "kill {signal} {}", self.pid());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
