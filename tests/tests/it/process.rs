//! Programs that run beside a test and end with it.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::executable::executable;

/// A running program; dropping it ends it.
pub(crate) struct Process(Child);

impl Process {
    /// Starts `command` and waits for the line of its output that contains `marker`.
    pub(crate) fn start(mut command: Command, marker: &str) -> (Self, String) {
        let (output, writer) = io::pipe().expect("a pipe");
        let errors = writer.try_clone().expect("a second end of the pipe");
        command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        let child = command.spawn().unwrap_or_else(|error| {
            let program = command.get_program().display();
            panic!("{program} does not start ({error}); on Debian: apt-get install chromium chromium-driver")
        });
        // The command holds its ends of the pipe; without them the output ends with the program.
        drop(command);
        let process = Self(child);
        let mut output = BufReader::new(output);
        let mut said = String::new();
        loop {
            let start = said.len();
            let read = output.read_line(&mut said).expect("readable output");
            assert!(read > 0, "ended before it said {marker:?}:\n{said}");
            if said[start..].contains(marker) {
                let line = said[start..].to_owned();
                // Read on, so that the program never waits for room in the pipe.
                std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
                return (process, line);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command that runs an example, which is built first.
pub(crate) fn example(name: &str) -> Command {
    Command::new(executable("examples", name))
}
