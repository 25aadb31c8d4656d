//! A real process: this binary once more, told by its environment to serve.
//!
//! The clock is real here; every wait is for something that happens, with a bound far beyond it.

use std::future::Future;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use pinned::PinnedWorker;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, Command};
use tokio_tungstenite::WebSocketStream;

use crate::scene::{Scene, quick, seconds};

/// Set for the process that serves: how long its drain waits.
const SERVES_WITH_DRAIN_MILLIS: &str = "PINNED_TEST_SERVES_WITH_DRAIN_MILLIS";

/// Set besides where the program brings a server of its own.
const SERVES_ITSELF: &str = "PINNED_TEST_SERVES_ITSELF";

/// Set besides where what is not set by hand comes from the environment.
#[cfg(feature = "fleet")]
const READS_ENVIRONMENT: &str = "PINNED_TEST_READS_ENVIRONMENT";

/// The test that [`Server::start`] runs once more in the process that serves.
const SERVES: &str = "worker::process::it_says_what_it_serves_and_answers_probes";

/// Serves until told to end, in the process that [`Server::start`] made for that. Whether this is that process.
async fn serves() -> bool {
    let Ok(drain) = std::env::var(SERVES_WITH_DRAIN_MILLIS) else {
        return false;
    };
    let scene = Scene::default();
    for place in ["work", "stream"] {
        scene.hold(place);
    }
    let drain = drain.parse().expect("milliseconds");
    let builder = scene
        .worker(quick())
        .bind(([127, 0, 0, 1], 0))
        .drain_deadline(Duration::from_millis(drain));
    #[cfg(feature = "fleet")]
    let builder = match std::env::var_os(READS_ENVIRONMENT) {
        Some(_) => builder.environment(),
        None => builder,
    };
    let worker = builder.build().expect("a valid worker");
    if std::env::var_os(SERVES_ITSELF).is_some() {
        serve_itself(worker).await;
    } else {
        worker.serve().await.expect("a clean end");
    }
    true
}

/// As a program does that has a server of its own.
async fn serve_itself(worker: PinnedWorker) {
    let running = worker.run_lifespan().await.expect("the first start");
    let drained = worker.install_sigterm_drain().expect("signals");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    eprintln!("serving on http://{address}\n/work");
    let app = worker.into_router().merge(worker.probes());
    let served = axum::serve(listener, app).with_graceful_shutdown(drained);
    served.await.expect("a clean end");
    assert!(worker.is_drained());
    running.shutdown().await.expect("a clean shutdown");
}

/// A process that serves, killed when this is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    errors: Lines<BufReader<ChildStderr>>,
    /// What it has said on its standard error, as far as it was read.
    said: String,
}

impl Server {
    async fn start(drain: Duration) -> Self {
        Self::start_with(drain, |_| {}).await
    }

    async fn start_with(drain: Duration, configure: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        configure(&mut command);
        let mut child = command
            .args(["--exact", SERVES, "--nocapture"])
            .env(SERVES_WITH_DRAIN_MILLIS, drain.as_millis().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let errors = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut server = Self {
            child,
            address: ([0, 0, 0, 0], 0).into(),
            errors,
            said: String::new(),
        };
        // The block ends with the last route of the last namespace.
        server.says("/work").await;
        let (_, place) = server.said.split_once("serving on http://").expect("where");
        let address = place.lines().next().expect("a line").parse();
        server.address = address.expect("an address");
        server
    }

    /// Waits until it has said `what`.
    async fn says(&mut self, what: &str) {
        while !self.said.contains(what) {
            let line = within(self.errors.next_line()).await.expect("readable");
            self.said.push_str(&line.expect("more than it said"));
            self.said.push('\n');
        }
    }

    async fn connect(&self) -> TcpStream {
        within(TcpStream::connect(self.address))
            .await
            .expect("it listens")
    }

    async fn send(&self, method: &str, path: &str) -> (StatusCode, String) {
        let mut connection = self.connect().await;
        exchange(&mut connection, method, path).await
    }

    async fn signal(&self, name: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args([name, &pid])
            .status()
            .await
            .expect("kill(1)");
        assert!(sent.success());
    }

    async fn ended(&mut self) -> ExitStatus {
        within(self.child.wait()).await.expect("waited for")
    }

    /// Waits until the handler of `POST /actors/a/work` runs.
    async fn working(&self) {
        let mut connection = self.connect().await;
        for attempt in 0.. {
            if exchange(&mut connection, "GET", "/actors/a/working")
                .await
                .1
                == "true"
            {
                return;
            }
            assert!(attempt < 100_000);
        }
    }

    /// Waits until the drain shows: new instances are refused.
    async fn draining(&self) {
        let mut connection = self.connect().await;
        for attempt in 0.. {
            let (status, body) =
                exchange(&mut connection, "GET", &format!("/actors/new-{attempt}")).await;
            if status == StatusCode::SERVICE_UNAVAILABLE {
                assert_eq!(body, r#"{"detail":"host draining; retry"}"#);
                return;
            }
            assert!(attempt < 100_000, "{status} {body}");
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a process lives in real time")]
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(seconds(30), future)
        .await
        .expect("in time")
}

async fn ask(connection: &mut TcpStream, method: &str, path: &str) {
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    connection
        .write_all(request.as_bytes())
        .await
        .expect("written");
}

/// One whole answer with a `content-length`.
async fn answer(connection: &mut TcpStream) -> (StatusCode, String) {
    let mut text = String::new();
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split_once("content-length: ").expect("a length").1;
            let length: usize = length
                .lines()
                .next()
                .expect("a line")
                .parse()
                .expect("a number");
            if body.len() >= length {
                let status = head[9..12].parse().expect("a status");
                return (status, body.to_owned());
            }
        }
        let more = read_some(connection).await;
        assert!(!more.is_empty(), "the connection ended within: {text}");
        text.push_str(&more);
    }
}

async fn exchange(connection: &mut TcpStream, method: &str, path: &str) -> (StatusCode, String) {
    ask(connection, method, path).await;
    answer(connection).await
}

/// What comes next; nothing at the end.
async fn read_some(connection: &mut TcpStream) -> String {
    let mut buffer = [0; 4096];
    let count = within(connection.read(&mut buffer))
        .await
        .expect("no reset");
    String::from_utf8(buffer[..count].to_vec()).expect("text")
}

#[tokio::test]
async fn it_says_what_it_serves_and_answers_probes() {
    if serves().await {
        return;
    }
    // W1.6, W13.2
    let mut server = Server::start(seconds(30)).await;
    let banner = &server.said;
    for said in [
        "pinned ",
        "DEV MODE",
        "store  none",
        "/actors",
        "Actor",
        "/actors/{id}/socket",
    ] {
        assert!(banner.contains(said), "{said}: {banner}");
    }
    assert_eq!(
        server.send("GET", "/readyz").await,
        (StatusCode::OK, String::new())
    );
    assert_eq!(
        server.send("GET", "/livez").await,
        (StatusCode::OK, String::new())
    );
    assert_eq!(
        server.send("GET", "/actors/a").await,
        (StatusCode::OK, "here".to_owned())
    );
    let (status, body) = server.send("GET", "/_pinned/stats").await;
    assert_eq!(
        (status, &*body),
        (
            StatusCode::FORBIDDEN,
            r#"{"detail":"invalid proxy secret"}"#
        )
    );
    let (status, body) = server.send("GET", "/nothing").await;
    assert_eq!(
        (status, &*body),
        (StatusCode::NOT_FOUND, r#"{"detail":"Not Found"}"#)
    );
    server.signal("-TERM").await;
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_held_stream_ends_and_the_process_exits_with_zero() {
    // W13.2, H10.7: a stream holds no drain up.
    let mut server = Server::start(seconds(3_600)).await;
    let mut stream = server.connect().await;
    ask(&mut stream, "GET", "/actors/a/stream").await;
    let mut text = String::new();
    while !text.contains("one") {
        text.push_str(&read_some(&mut stream).await);
    }
    server.signal("-TERM").await;
    while !text.ends_with("0\r\n\r\n") {
        let more = read_some(&mut stream).await;
        assert!(!more.is_empty(), "cut off, not ended: {text}");
        text.push_str(&more);
    }
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_program_with_a_server_of_its_own_drains_and_ends_by_itself() {
    // W13.2, W13.4
    let mut server = Server::start_with(seconds(2), |command| {
        command.env(SERVES_ITSELF, "1");
    })
    .await;
    assert_eq!(server.send("GET", "/readyz").await.0, StatusCode::OK);
    let mut held = server.connect().await;
    ask(&mut held, "POST", "/actors/a/work").await;
    server.working().await;
    server.signal("-TERM").await;
    server.draining().await;
    let (status, body) = answer(&mut held).await;
    assert_eq!(
        (status, &*body),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"detail":"instance aborted"}"#
        )
    );
    assert_eq!(server.ended().await.code(), Some(0));
}

#[cfg(feature = "fleet")]
#[tokio::test]
async fn a_worker_that_does_not_get_into_its_fleet_says_so_without_a_log() {
    // W3.10, as README promises it. The port is taken, and nobody listens there.
    let nobody = tokio::net::TcpSocket::new_v4().expect("a socket");
    nobody
        .bind(([127, 0, 0, 1], 0).into())
        .expect("a free port");
    let pinboard = format!("http://{}", nobody.local_addr().expect("bound"));
    let mut server = Server::start_with(seconds(30), |command| {
        command
            .env(READS_ENVIRONMENT, "1")
            .env("PINBOARD_URL", pinboard)
            .env("PINBOARD_TOKEN", "letmein")
            .env("ADVERTISE_URL", "http://127.0.0.1:8001")
            .env_remove("PINNED_STORE");
    })
    .await;
    server
        .says("pinned: not registered with the control plane, which is tried again: it cannot be reached: ")
        .await;
    assert!(!server.said.contains("letmein"), "{}", server.said);
    let (status, body) = server.send("GET", "/readyz").await;
    assert_eq!(
        (status.as_u16(), &*body),
        (503, r#"{"detail":"not registered"}"#)
    );
    server.signal("-TERM").await;
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn sigint_drains_as_well() {
    let mut server = Server::start(seconds(30)).await;
    server.send("GET", "/actors/a").await;
    server.signal("-INT").await;
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn work_is_cut_off_at_the_drain_deadline() {
    // W13.4
    let mut server = Server::start(Duration::from_millis(200)).await;
    let mut busy = server.connect().await;
    ask(&mut busy, "POST", "/actors/a/work").await;
    server.working().await;
    server.signal("-TERM").await;
    let (status, body) = answer(&mut busy).await;
    assert_eq!(
        (status.as_u16(), &*body),
        (503, r#"{"detail":"instance aborted"}"#)
    );
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    // W13.3, as the design decides it.
    for second in ["-TERM", "-INT"] {
        let mut server = Server::start(seconds(3_600)).await;
        let mut busy = server.connect().await;
        ask(&mut busy, "POST", "/actors/a/work").await;
        server.working().await;
        server.signal("-TERM").await;
        server.draining().await;
        server.signal(second).await;
        let number = if second == "-TERM" { 15 } else { 2 };
        assert_eq!(server.ended().await.code(), Some(128 + number));
    }
}

#[tokio::test]
async fn requests_that_race_the_drain_are_answered_and_idle_connections_are_closed() {
    // W13.1, H10.5, H10.7
    let mut server = Server::start(seconds(3_600)).await;
    let mut idle = server.connect().await;
    exchange(&mut idle, "GET", "/actors/a").await;
    let mut busy = server.connect().await;
    ask(&mut busy, "POST", "/actors/a/work").await;
    server.working().await;
    server.signal("-TERM").await;
    server.draining().await;

    // The instance that holds the drain up serves on, on connections old and new; readiness is the lease's affair.
    assert_eq!(
        exchange(&mut idle, "GET", "/actors/a").await.0,
        StatusCode::OK
    );
    assert_eq!(server.send("GET", "/livez").await.0, StatusCode::OK);
    let (status, body) = exchange(&mut idle, "GET", "/actors/b").await;
    assert_eq!(
        (status.as_u16(), &*body),
        (503, r#"{"detail":"host draining; retry"}"#)
    );

    assert_eq!(
        server.send("POST", "/actors/a/open/work").await.0,
        StatusCode::OK
    );
    assert_eq!(
        answer(&mut busy).await,
        (StatusCode::OK, "worked".to_owned())
    );
    assert_eq!(read_some(&mut idle).await, "");
    assert_eq!(read_some(&mut busy).await, "");
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn websocket_clients_get_a_close_frame() {
    // H6.8
    let mut server = Server::start(seconds(30)).await;
    let uri = format!("ws://{}/actors/a/socket", server.address);
    let (mut socket, _) = within(tokio_tungstenite::client_async(uri, server.connect().await))
        .await
        .expect("a socket");
    server.signal("-TERM").await;
    assert_eq!(within(next_close(&mut socket)).await, 1012);
    assert_eq!(server.ended().await.code(), Some(0));
}

async fn next_close(socket: &mut WebSocketStream<TcpStream>) -> u16 {
    match socket.next().await {
        Some(Ok(tokio_tungstenite::tungstenite::Message::Close(Some(frame)))) => frame.code.into(),
        other => panic!("expected a close frame, got {other:?}"),
    }
}
