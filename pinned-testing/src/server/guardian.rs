//! The shell that a server runs under.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use super::folder::Folder;
use super::log::{Failure, Log};
use super::port::free_port;

/// Somebody else may take the free port first.
const PORTS_TRIED: usize = 5;
/// What the guardian adds to the server's log.
const ENDED: &str = "guardian: ended";

/// Takes orders, one a line, and answers each with a line. Once `read` finds the other end of the pipe gone, whatever
/// became of the process that had it, it ends the server and removes the folder.
///
/// The server is its child and is waited for by nobody else, so that the process id stays the server's until the
/// guardian has let go of it. The log goes through a named pipe: its end is the end of the server and of every process
/// that the server has started.
const GUARDIAN: &str = r#"
    folder=$1 ending=$2
    shift 2
    # The group of a stopped server is sent this when the process that has started it dies.
    trap '' HUP
    set -f
    server=
    mkfifo "$folder/log" || exit
    end() {
        [ -n "$server" ] || return
        kill -s "$ending" "$server" 2>/dev/null
        wait
        server=
    }
    while read -r order arguments; do
        case $order in
            start)
                end
                { cat <"$folder/log"; echo 'guardian: ended'; } >&2 &
                exec "$@" $arguments </dev/null >"$folder/log" 2>&1 &
                server=$!
                echo "$server"
                ;;
            end)
                end
                echo
                ;;
            *)
                kill -s "$order" "$server"
                echo
                ;;
        esac
    done
    end
    rm -rf "$folder"
"#;

/// How to run a server.
pub(crate) struct Served {
    /// What people call it.
    pub(crate) name: &'static str,
    /// Runs `/bin/sh`, as whom the server is to run.
    pub(crate) shell: Command,
    /// The program and the arguments that stay the same.
    pub(crate) command: Vec<OsString>,
    /// The signal that ends it at once, after which it can be started again.
    pub(crate) ending: &'static str,
    /// Texts in the log by which it tells its state. Each of them means that it serves.
    pub(crate) marks: &'static [&'static str],
}

/// A server under its guardian. The server ends and its folder is removed when this is dropped, and also when this
/// process ends in any other way.
///
/// Its methods block.
pub(crate) struct Guarded {
    name: &'static str,
    guardian: Mutex<Guardian>,
    log: Arc<Log>,
}

struct Guardian {
    shell: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Those that the server was last started with.
    arguments: String,
}

// --- Guarded ----------------------------------------------------------------------------------------------------------

impl Guarded {
    /// Starts the guardian, without the server, and gives it the folder.
    ///
    /// # Panics
    ///
    /// When there is no shell.
    pub(crate) fn new(folder: Folder, served: Served) -> Self {
        let guardian = Guardian::start(served.shell, folder.path(), served.ending, served.command);
        let (guardian, stderr) =
            guardian.unwrap_or_else(|error| panic!("no shell for {}: {error}", served.name));
        folder.hand_over();
        let log = Arc::new(Log::new(served.marks, ENDED));
        let followed = Arc::clone(&log);
        thread::spawn(move || followed.follow(stderr));
        Self {
            name: served.name,
            guardian: Mutex::new(guardian),
            log,
        }
    }

    /// Starts the server on free ports of 127.0.0.1, which `arguments` turns into arguments without spaces in them.
    ///
    /// # Panics
    ///
    /// When it does not come to serve.
    pub(crate) fn start<const N: usize>(&self, arguments: impl Fn([u16; N]) -> String) -> [u16; N] {
        let mut guardian = self.guardian.lock();
        for _ in 0..PORTS_TRIED {
            let ports = [(); N].map(|()| free_port());
            guardian.arguments = arguments(ports);
            match self.run(&mut guardian) {
                Ok(()) => return ports,
                Err(failure) if failure.is_port_taken() => {}
                Err(failure) => panic!("{} did not start: {failure}", self.name),
            }
        }
        panic!("{} found each of {PORTS_TRIED} free ports taken", self.name);
    }

    /// Starts the server on the ports it had, after ending it if it runs.
    ///
    /// # Panics
    ///
    /// When it does not come to serve.
    pub(crate) fn restart(&self) {
        let mut guardian = self.guardian.lock();
        self.end(&mut guardian);
        if let Err(failure) = self.run(&mut guardian) {
            panic!("{} did not start again: {failure}", self.name);
        }
    }

    /// Ends the server at once, if it runs. It can be restarted.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub(crate) fn kill(&self) {
        self.end(&mut self.guardian.lock());
    }

    /// Sends the server a signal.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub(crate) fn signal(&self, signal: &str) {
        let mut guardian = self.guardian.lock();
        assert!(self.log.is_running(), "{} does not run", self.name);
        self.order(&mut guardian, signal);
    }

    /// Waits until the mark of this index is what the server has said last.
    pub(crate) fn wait_for_mark(&self, mark: usize) -> Result<(), Failure> {
        self.log.wait_for_mark(mark)
    }

    /// The process id of the server, if it runs. Does not block.
    pub(crate) fn process(&self) -> Option<u32> {
        self.log.process()
    }

    fn run(&self, guardian: &mut Guardian) -> Result<(), Failure> {
        self.log.expect_run();
        let order = format!("start {}", guardian.arguments);
        let answer = self.order(guardian, &order);
        let process = answer.trim().parse();
        self.log.runs_as(process.unwrap_or_else(|_| {
            panic!("the guardian of {} answered {answer:?}", self.name);
        }));
        self.log.wait_for_any_mark()
    }

    fn end(&self, guardian: &mut Guardian) {
        self.order(guardian, "end");
        if let Err(failure) = self.log.wait_for_end() {
            panic!("{} did not end: {failure}", self.name);
        }
    }

    fn order(&self, guardian: &mut Guardian, order: &str) -> String {
        guardian
            .order(order)
            .unwrap_or_else(|error| panic!("the guardian of {} is gone: {error}", self.name))
    }
}

// --- Guardian ---------------------------------------------------------------------------------------------------------

impl Guardian {
    fn start(
        mut shell: Command,
        folder: &Path,
        ending: &str,
        command: Vec<OsString>,
    ) -> io::Result<(Self, impl io::Read + Send + use<>)> {
        shell
            .args(["-c", GUARDIAN, "guardian"])
            .arg(folder)
            .arg(ending)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // What a terminal or a runner of tests sends to the group of this process is not for the guardian.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut shell = shell.spawn()?;
        let stderr = shell.stderr.take().expect("piped");
        let guardian = Self {
            orders: shell.stdin.take(),
            answers: BufReader::new(shell.stdout.take().expect("piped")),
            arguments: String::new(),
            shell,
        };
        Ok((guardian, stderr))
    }

    fn order(&mut self, order: &str) -> io::Result<String> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(format!("{order}\n").as_bytes())?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It has been told, and there is nothing to do about a failure.
        let _ = self.shell.wait();
    }
}
