//! A real process and the signals that end it.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Longer than anything here takes, shorter than a drain's deadline.
const PATIENCE: Duration = Duration::from_secs(25);

struct Worker {
    child: Child,
    address: String,
}

impl Worker {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_held"))
            .env("BIND", "127.0.0.1")
            .env("PORT", "0")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        errors
            .read_line(&mut line)
            .expect("the program says where it serves");
        let (_, address) = line.trim().split_once("http://").expect("an address");
        let address = address.to_owned();
        // Read on, so that the program never waits for room in the pipe.
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        Self { child, address }
    }

    fn get(&self, path: &str) -> TcpStream {
        let mut client = TcpStream::connect(&self.address).expect("the program listens");
        client
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        write!(
            client,
            "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n"
        )
        .expect("it listens on");
        client
    }

    fn answer(&self, path: &str) -> String {
        let mut answer = String::new();
        self.get(path)
            .read_to_string(&mut answer)
            .expect("an answer");
        answer
    }

    fn terminate(&self) {
        let sent = Command::new("sh")
            .args(["-c", "kill -TERM $0", &self.child.id().to_string()])
            .status()
            .expect("there is a shell");
        assert!(sent.success());
    }

    fn end(mut self) -> ExitStatus {
        self.child.wait().expect("the program can be waited for")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // After a failed assertion; otherwise it has ended by itself.
        let _ = self.child.kill();
    }
}

fn read_until(client: &mut TcpStream, marker: &str) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let read = client.read(&mut buffer).expect("the stream goes on");
        assert!(read > 0, "ended before {marker:?}");
        said.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&said);
        if text.contains(marker) {
            return text.into_owned();
        }
    }
}

// W13.2, H11.8: the stream ends as a whole body does, and the process with success.
#[test]
fn a_signal_ends_a_process_that_a_stream_holds() {
    let worker = Worker::start();
    let mut client = worker.get("/held/alice/stream");
    read_until(&mut client, "open");
    worker.terminate();
    read_until(&mut client, "0\r\n\r\n");
    assert_eq!(worker.end().code(), Some(0));
}

// W13.3 as `design` has it: whoever signals twice does not want to wait.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let worker = Worker::start();
    assert!(
        worker
            .answer("/held/alice/task")
            .starts_with("HTTP/1.1 200")
    );
    worker.terminate();
    // The drain has begun when nothing new is taken; the task holds it up.
    let refused = (0..1_000).any(|id| {
        worker
            .answer(&format!("/held/{id}/task"))
            .contains("pinned-refusal: draining")
    });
    assert!(refused, "no drain has begun");
    worker.terminate();
    assert_eq!(worker.end().code(), Some(128 + 15));
}
