//! What requests and connections cost in memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::thread;

use tokio::sync::oneshot;

use super::rig::{Rig, Worker};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nserver: worker\r\ncontent-length: 5\r\n\r\nhello";

/// Whether this process runs the test `name` and nothing else; if not, one is started that does. What a process holds in memory
/// is everybody's.
pub(super) fn alone(name: &str) -> bool {
    const ALONE: &str = "PINBOARD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some_and(|alone| alone == name) {
        return true;
    }
    let tests = std::env::current_exe().expect("a path");
    let mut test = Command::new(tests);
    test.args([name, "--exact", "--test-threads=1", "--nocapture"])
        .env(ALONE, name);
    assert!(
        test.status().expect("it runs").success(),
        "{name} in a process of its own"
    );
    false
}

/// The resident memory of this process, in bytes.
pub(super) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    pages * 4096
}

/// Answers every request on every connection, on threads of its own.
fn answer_always(worker: Worker) {
    let listener = worker.into_blocking();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepts");
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // Heads come whole here, one at a time.
                while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                    stream.write_all(RESPONSE).expect("open");
                }
            });
        }
    });
}

/// Asks `times` times on one connection, on a thread of its own.
fn ask(stream: TcpStream, times: usize) -> (TcpStream, oneshot::Receiver<()>) {
    let (done, is_done) = oneshot::channel();
    let mut asking = stream.try_clone().expect("a handle");
    thread::spawn(move || {
        let request =
            b"GET /rooms/alice/x?y=z HTTP/1.1\r\nHost: rooms.example\r\nUser-Agent: test\r\n\
            Accept: */*\r\nCookie: a=b\r\n\r\n";
        let mut buffer = [0; 4096];
        for _ in 0..times {
            asking.write_all(request).expect("open");
            let mut answer = Vec::new();
            while !answer.ends_with(b"hello") {
                let read = asking.read(&mut buffer).expect("open");
                assert!(read > 0, "an answer");
                answer.extend_from_slice(&buffer[..read]);
            }
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
        let _ = done.send(());
    });
    (stream, is_done)
}

#[test]
fn a_request_for_a_known_id_allocates_little() {
    // "Hot path ... know what it allocates."
    const TIMES: usize = 2_000;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (rig, client) = runtime.block_on(async {
        let rig = Rig::new().await;
        let worker = rig.worker("a").await;
        answer_always(worker);
        let client = TcpStream::connect(rig.address).expect("listens");
        let (client, is_done) = ask(client, 50);
        is_done.await.expect("answered");
        (rig, client)
    });
    let mut client = Some(client);
    let info = allocation_counter::measure(|| {
        let (kept, is_done) = ask(client.take().expect("one"), TIMES);
        runtime.block_on(is_done).expect("answered");
        client = Some(kept);
    });
    let each = info.count_total as f64 / TIMES as f64;
    // Ours are the head as the worker gets it, and the two of the map of the answer's headers. hyper's are another map, where the
    // one of the last answer is too small for the request's headers, and a buffer with its count of references.
    assert!(each <= 7.0, "{each} allocations for each request");
    drop(rig);
}

#[test]
fn an_idle_tunnel_keeps_little_memory() {
    // Issue 4: "10,000 idle WebSockets: at most 24 KiB of resident memory each (both legs)."
    const TUNNELS: usize = 400;
    if !alone("proxy::footprint::an_idle_tunnel_keeps_little_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let rig = Rig::new().await;
        let worker = rig.worker("a").await;
        let mut held = Vec::with_capacity(TUNNELS);
        let mut before = 0;
        for at in 0..TUNNELS + 50 {
            // What there is only once is there by now.
            if at == 50 {
                before = resident();
            }
            held.push(tunnel(&rig, &worker).await);
        }
        let each = resident().saturating_sub(before) / TUNNELS;
        println!("{each} bytes for each tunnel and both its far ends");
        assert!(each < 24 << 10, "{each} bytes each");
    });
}

/// A WebSocket that has been used once each way, and both its far ends.
async fn tunnel(rig: &Rig, worker: &Worker) -> impl Sized + use<> {
    let mut client = rig
        .send("GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    let (mut peer, _) = worker
        .answer(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        )
        .await;
    client.head().await;
    client.write([0x81, 0x80, 0, 0, 0, 0]).await;
    peer.expect([0x81, 0x80, 0, 0, 0, 0]).await;
    peer.write([0x81, 0]).await;
    client.expect([0x81, 0]).await;
    (client, peer)
}
