//! Programs that run beside a test and end with it.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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

/// The path of a program of another package of the workspace, which is built first.
pub(crate) fn executable(package: &str, name: &str) -> PathBuf {
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bin", name])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(build.status.success(), "{name} of {package} does not build");
    String::from_utf8(build.stdout)
        .expect("cargo writes UTF-8")
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| Some(message["executable"].as_str()?.into()))
        .expect("cargo names the executable")
}
