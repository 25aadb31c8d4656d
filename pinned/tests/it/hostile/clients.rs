//! Clients on real connections that leave at bad moments.

use std::convert::Infallible;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use axum::body::Body;
use pinned::{PinnedHost, PinnedWorker, WriteTurn, pinned_api, route};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::rig::{domain, millis, secs};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api]
impl Counter {
    #[route::post("/increment")]
    async fn increment(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }
}

/// A worker on a port of its own.
pub(super) async fn serve(
    worker: &PinnedWorker,
) -> (SocketAddr, pinned::domain::TaskHandle<pinned::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = domain().spawn(worker.clone().serve_on(listener));
    (address, server)
}

async fn write(host: &PinnedHost<Counter>) -> WriteTurn<Counter> {
    let wait = async {
        loop {
            match host.write("a").await {
                Ok(turn) => return turn,
                // It starts in a moment.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    domain().timeout(secs(5), wait).await.expect("a turn")
}

#[tokio::test]
async fn a_client_that_leaves_behind_its_request_takes_no_turn_along() {
    // H5.4: the server learns of the request and of the client's end in one look.
    let worker = PinnedWorker::builder()
        .host::<Counter>("/counters")
        .build()
        .expect("built");
    let (address, server) = serve(&worker).await;
    let host = worker.hosted::<Counter>().expect("hosted");
    let held = write(&host).await;
    for _ in 0..3 {
        // Blocking, so that the server sees nothing before the client has left.
        let mut client = TcpStream::connect(address).expect("connected");
        client
            .write_all(b"POST /counters/a/increment HTTP/1.1\r\nhost: x\r\n")
            .expect("sent");
        domain().sleep(millis(50)).await;
        client.write_all(b"\r\n").expect("sent");
        drop(client);
        // This thread is the server's too: it looks when all of that has arrived.
        #[allow(
            clippy::disallowed_methods,
            reason = "nothing else is to run meanwhile"
        )]
        std::thread::sleep(millis(50));
        domain().sleep(millis(50)).await;
    }
    drop(held);
    assert_eq!(write(&host).await.count, 0);
    let stats = worker.stats();
    assert_eq!(stats["instances"][0]["tasks"], 0, "{stats}");
    drop(server);
}

#[tokio::test]
async fn dropping_the_server_ends_its_connections() {
    let worker = PinnedWorker::builder()
        .host::<Counter>("/counters")
        .build()
        .expect("built");
    let (address, server) = serve(&worker).await;
    let mut client = tokio::net::TcpStream::connect(address)
        .await
        .expect("connected");
    client
        .write_all(b"POST /counters/a/increment HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .expect("sent");
    let mut answer = [0; 1024];
    let length = client.read(&mut answer).await.expect("an answer");
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
    server.abort();
    let end = domain().timeout(secs(5), client.read(&mut answer)).await;
    assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
}

/// Far more than the worker waits for anything on a connection.
const AGES: u64 = 3_600;

#[derive(Default)]
struct Slow;

#[pinned_api]
impl Slow {
    #[route::get("/now")]
    async fn now(&self) -> &'static str {
        "now"
    }

    #[route::get("/late")]
    async fn late(&self) -> &'static str {
        domain().sleep(secs(AGES)).await;
        "late"
    }

    #[route::get("/stream")]
    async fn stream(&self) -> Body {
        let later = async {
            domain().sleep(secs(AGES)).await;
            Ok::<_, Infallible>("late")
        };
        Body::from_stream(futures_util::stream::once(later))
    }
}

/// What is left of a connection once this was sent, by a clock that jumps to whatever is waited for.
async fn sent_to_slow(bytes: &str) -> String {
    let worker = PinnedWorker::builder()
        .host::<Slow>("/slow")
        .build()
        .expect("built");
    let (address, server) = serve(&worker).await;
    let mut client = tokio::net::TcpStream::connect(address)
        .await
        .expect("connected");
    client.write_all(bytes.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    domain()
        .timeout(secs(2 * AGES), client.read_to_end(&mut answer))
        .await
        .expect("the connection ends")
        .expect("answers before that");
    server.abort();
    String::from_utf8(answer).expect("text")
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_cut_off() {
    for whole_before in [0, 1, 2] {
        let whole = "GET /slow/a/now HTTP/1.1\r\nhost: x\r\n\r\n".repeat(whole_before);
        let answer = sent_to_slow(&format!("{whole}GET /slow/a/now HTTP/1.1\r\nhost: x\r\n")).await;
        assert_eq!(answer.matches("now").count(), whole_before, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_take_its_time() {
    for path in ["late", "stream"] {
        let answer = sent_to_slow(&format!("GET /slow/a/{path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        assert!(answer.contains("late"), "{path}: {answer}");
    }
}
