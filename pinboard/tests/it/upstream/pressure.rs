//! Nothing is buffered but what a buffer holds (P5.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use pinboard::upstream::{Backend, Framing};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::rig::{Endless, PIPE, Peer, Rig, data, get, none, options, request};

const FRAME: usize = 16 << 10;
const LONG: usize = 256 << 20;

fn endless(left: usize) -> (Endless, Arc<AtomicUsize>) {
    let pulled = Arc::new(AtomicUsize::new(0));
    let body = Endless {
        left: left as u64,
        frame: Bytes::from(vec![b'x'; FRAME]),
        pulled: Arc::clone(&pulled),
    };
    (body, pulled)
}

#[tokio::test(start_paused = true)]
async fn a_slow_worker_slows_the_body_of_its_request() {
    let mut rig = Rig::new();
    let (body, pulled) = endless(LONG);
    let mut sent = std::pin::pin!(rig.backend.send(
        0,
        request("POST", "/", Framing::Length(LONG as u64)),
        body
    ));
    assert!(futures_util::poll!(&mut sent).is_pending());
    let mut peer = Peer::new(rig.accepted.try_recv().expect("a connection"));
    let mut read = peer.head().await.len();
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut sent).is_pending());
        let held = pulled.load(Ordering::Relaxed) - read;
        assert!(held <= PIPE + FRAME, "{held} bytes are under way");
        read += peer.read(10_000).await.len();
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_slows_only_its_own_worker() {
    let mut rig = Rig::new();
    let written = AtomicUsize::new(0);
    let sent = rig.backend.send(0, get("/"), none());
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n"))
            .await;
        peer
    });
    let mut body = reply.expect("a reply").body;
    let writing = async {
        loop {
            let n = peer.stream.write(&[b'x'; FRAME]).await.expect("open");
            written.fetch_add(n, Ordering::Relaxed);
        }
    };
    let mut writing = std::pin::pin!(writing);
    let mut read = 0;
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut writing).is_pending());
        let held = written.load(Ordering::Relaxed) - read;
        assert!(
            held <= PIPE + FRAME + (64 << 10),
            "{held} bytes are under way"
        );
        let frame = data(&mut body).await;
        assert!(frame.len() <= 64 << 10);
        read += frame.len();
    }
}

/// The most memory that was taken while `future` ran, with all that it does on one thread.
fn memory_of<F: Future<Output = ()>>(future: F) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let info = allocation_counter::measure(|| runtime.block_on(future));
    info.bytes_max
}

// P5.2: a 10 GB upload needs no more memory than a 10 KB one.
#[test]
fn a_long_upload_needs_no_more_memory_than_a_short_one() {
    // `4000\r\n`, the data and `\r\n`, and the last chunk.
    let of_chunks = LONG / FRAME * 8 + 5;
    for (framing, beside) in [
        (Framing::Length(LONG as u64), 0),
        (Framing::Chunked, of_chunks),
    ] {
        let peak = memory_of(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let backend = Backend::new(options(&format!("http://{address}/"), vec![address]));
            let (body, _) = endless(LONG);
            let (reply, ()) = tokio::join!(
                backend.send(0, request("POST", "/", framing), body),
                async {
                    let mut peer = Peer::new(listener.accept().await.expect("a connection").0);
                    peer.head().await;
                    let mut buffer = vec![0; 64 << 10];
                    let mut left = LONG + beside;
                    while left > 0 {
                        let read = peer.stream.read(&mut buffer).await.expect("open");
                        assert_ne!(read, 0, "with {left} bytes to come");
                        left -= read;
                    }
                    peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
                }
            );
            reply.expect("a reply");
            assert_eq!(backend.idle(), 1);
        });
        assert!(peak < 512 << 10, "{peak} bytes");
    }
}

#[test]
fn a_long_response_needs_no_more_memory_than_a_short_one() {
    let peak = memory_of(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let backend = Backend::new(options(&format!("http://{address}/"), vec![address]));
        let client = async {
            let reply = backend.send(0, get("/"), none()).await.expect("a reply");
            let mut body = reply.body;
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                read += frame.expect("no error").into_data().expect("data").len();
            }
            read
        };
        let worker = async {
            let mut peer = Peer::new(listener.accept().await.expect("a connection").0);
            peer.head().await;
            peer.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n"))
                .await;
            let part = vec![b'x'; 64 << 10];
            for _ in 0..LONG / part.len() {
                peer.write(&part).await;
            }
        };
        let (read, ()) = tokio::join!(client, worker);
        assert_eq!(read, LONG);
        // Nor is the large buffer kept.
        assert_eq!(backend.idle(), 1);
    });
    assert!(peak < 512 << 10, "{peak} bytes");
}
