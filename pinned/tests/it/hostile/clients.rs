//! Clients on real connections that leave at bad moments.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

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
