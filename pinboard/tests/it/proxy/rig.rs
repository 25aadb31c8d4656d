//! A whole data plane over TCP: a server with its proxy on a store in memory, and workers that the test plays itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use futures_util::FutureExt as _;
use pinboard::events::Events;
use pinboard::passport::Passport;
use pinboard::placement::Placement;
use pinboard::proxy::Proxy;
use pinboard::server::{Lifecycle, Server, ServerOptions};
use pinboard::settings::Settings;
use pinboard::store::*;
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinboard::workers::Workers;
use pinned_domain::{Domain, TaskHandle};
use pinned_wire::attestation::{Caller, Claims, verify};
use pinned_wire::registry::{Secret, Takeover};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const NS: &str = "/rooms";

/// How long a test waits for what has to come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// What a rig is made of.
pub(crate) struct Plan {
    pub(crate) passport: Option<&'static str>,
    pub(crate) options: ServerOptions,
    pub(crate) lease_ttl: Duration,
    /// Whether the node hears of what changes in the store.
    pub(crate) is_told: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            passport: None,
            options: ServerOptions::default(),
            lease_ttl: Duration::from_secs(15),
            is_told: true,
        }
    }
}

/// A data plane that listens on loopback.
pub(crate) struct Rig {
    pub(crate) domain: Domain,
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) placement: Placement,
    store: MemoryStore,
    workers: Workers,
    tasks: Vec<TaskHandle<()>>,
}

struct NoFetcher;

impl Fetcher for NoFetcher {
    fn fetch(
        &self,
        fetch: Fetch,
    ) -> futures_util::future::BoxFuture<'static, Result<Fetched, FetchError>> {
        panic!("nobody fetches {}", fetch.url)
    }
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::planned(Plan::default()).await
    }

    pub(crate) async fn planned(plan: Plan) -> Self {
        let domain = Domain::real();
        let mut settings = Settings::default();
        settings.lease_ttl = plan.lease_ttl;
        settings.lanes = plan.options.lanes;
        let options = StoreOptions {
            lease_ttl: plan.lease_ttl,
            quarantine: Duration::from_millis(1),
            shards: 16,
        };
        let store = MemoryStore::new(options, domain.clone());
        store.prepare().await.expect("prepares");
        let node: Arc<dyn RegistryStore> = Arc::new(store.node());
        let workers = Workers::new(Arc::clone(&node), domain.clone(), &settings);
        let placement = Placement::new(
            node,
            workers.clone(),
            Events::new(),
            domain.clone(),
            &settings,
        );
        let fetcher: Arc<dyn Fetcher> = Arc::new(NoFetcher);
        let passport = plan.passport.map_or_else(Passport::default, |json| {
            Passport::parse(json, |_| None, &domain, &fetcher).expect("a passport")
        });
        let proxy = Proxy::new(placement.clone(), workers.clone(), passport, domain.clone());
        let lifecycle = Lifecycle::new();
        let server = Server::new(
            proxy,
            router(&lifecycle),
            lifecycle,
            domain.clone(),
            plan.options,
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = {
            let server = server.clone();
            domain.spawn(async move { server.serve(0, listener).await.expect("serves") })
        };
        let mut tasks = vec![serving];
        if plan.is_told {
            let placement = placement.clone();
            tasks.push(domain.spawn(async move {
                let _ = placement.run().await;
            }));
        }
        // The quarantine is over.
        domain.sleep(Duration::from_millis(3)).await;
        Self {
            domain,
            server,
            address,
            placement,
            store,
            workers,
            tasks,
        }
    }

    /// A worker that serves [`NS`], and registered a while ago.
    pub(crate) async fn worker(&self, name: &str) -> Worker {
        self.worker_at(name, "").await
    }

    /// A worker whose URL has a path.
    pub(crate) async fn worker_at(&self, name: &str, path: &str) -> Worker {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let worker = Worker {
            session: SessionId::new(format!("session-{name}")),
            secret: format!("secret-{name}"),
            listener,
        };
        self.register(&worker, format!("http://{address}{path}"), address)
            .await;
        // So long a new worker is left alone.
        self.domain.sleep(Duration::from_millis(55)).await;
        worker
    }

    async fn register(&self, worker: &Worker, advertise_url: String, address: SocketAddr) {
        let record = SessionRecord {
            client_id: format!("client of {}", worker.session),
            secret: Secret::new(worker.secret.clone()),
            namespaces: vec![NS.into(), "/locked".into()],
            advertise_url,
            addresses: vec![address],
            hostname: "*".into(),
            env: "*".into(),
            envs: BTreeMap::new(),
            takeover: Takeover::default(),
            binding_epoch: 0,
            registered_at: 1_800_000_000_000,
            update: SessionUpdate {
                headroom: 1_024,
                draining: false,
                reachable: true,
                moved_to: None,
            },
        };
        let new = NewSession {
            id: worker.session.clone(),
            record,
        };
        self.store.register(new).await.expect("registers");
        self.workers.refresh_now().await.expect("reads");
    }

    /// Places an id, as a request for it would.
    pub(crate) async fn place(&self, id: &str) -> u64 {
        let placed = self.placement.resolve(&PlacementKey::single(NS, id)).await;
        placed.expect("placed").epoch
    }

    /// Frees the row of an id that `worker` holds, as the worker would.
    pub(crate) async fn release(&self, worker: &Worker, id: &str) {
        let release = Release {
            session: worker.session.clone(),
            key: PlacementKey::single(NS, id),
            epoch: None,
        };
        assert_eq!(self.store.release(&[release]).await.expect("answers"), 1);
    }

    /// Ends the session of a worker, as it would.
    pub(crate) async fn end(&self, worker: &Worker, mode: EndMode) {
        self.end_unseen(worker, mode).await;
        self.workers.refresh_now().await.expect("reads");
    }

    /// The same, and the node has not read it yet.
    pub(crate) async fn end_unseen(&self, worker: &Worker, mode: EndMode) {
        self.store
            .end_session(&worker.session, mode)
            .await
            .expect("answers");
    }

    /// Who holds an id.
    pub(crate) async fn holder(&self, id: &str) -> Option<SessionId> {
        let key = PlacementKey::single(NS, id);
        self.store
            .row(&key)
            .await
            .expect("answers")
            .map(|row| row.session)
    }

    /// A client's connection.
    pub(crate) async fn connect(&self) -> Peer<TcpStream> {
        Peer::new(TcpStream::connect(self.address).await.expect("listens"))
    }

    /// Sends a request with a `Host` on a connection of its own.
    pub(crate) async fn send(&self, request: &str) -> Peer<TcpStream> {
        let mut client = self.connect().await;
        client.write(request).await;
        client
    }

    /// Sends a `GET` on a connection of its own, and gives the answer of `worker`'s next connection to it.
    pub(crate) async fn get(&self, target: &str) -> Peer<TcpStream> {
        self.send(&get(target)).await
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.server.stop_now();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A plain request.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: rooms.example\r\n\r\n")
}

/// What is not an instance's: it says which path it was asked for.
fn router(lifecycle: &Lifecycle) -> Router {
    let lifecycle = lifecycle.clone();
    Router::new()
        .route(
            "/readyz",
            any(move || async move {
                if lifecycle.is_leaving() {
                    http::StatusCode::SERVICE_UNAVAILABLE
                } else {
                    http::StatusCode::OK
                }
            }),
        )
        .fallback(|request: axum::extract::Request| async move {
            let peer = request
                .extensions()
                .get::<axum::extract::ConnectInfo<SocketAddr>>();
            format!("routed {} for {}", request.uri(), peer.is_some())
        })
}

/// A worker whose part the test plays.
pub(crate) struct Worker {
    pub(crate) session: SessionId,
    pub(crate) secret: String,
    listener: TcpListener,
}

impl Worker {
    /// The next connection to it.
    pub(crate) async fn accept(&self) -> Peer<TcpStream> {
        let accepted = soon("a connection to the worker", self.listener.accept()).await;
        Peer::new(accepted.expect("accepts").0)
    }

    /// Whether nobody has connected.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.listener.accept().now_or_never().is_none()
    }

    /// Accepts a connection and reads the head of a request from it.
    pub(crate) async fn asked(&self) -> (Peer<TcpStream>, Head) {
        let mut peer = self.accept().await;
        let head = peer.head().await;
        (peer, head)
    }

    /// Accepts a connection, reads a request without a body, and answers it.
    pub(crate) async fn answer(&self, response: &str) -> (Peer<TcpStream>, Head) {
        let (mut peer, head) = self.asked().await;
        peer.write(response).await;
        (peer, head)
    }

    /// Whom a request is attested as, by the worker's own secret and for its own session.
    pub(crate) fn caller(&self, head: &Head) -> Option<Caller> {
        self.claims(head).map(Caller::from)
    }

    /// All that the attestation says.
    pub(crate) fn claims(&self, head: &Head) -> Option<Claims> {
        let token = head.header("pinboard-attestation")?;
        let now = Domain::real().now();
        verify(&self.secret, &[self.session.as_str()], now, token)
    }

    /// Nobody listens any more.
    pub(crate) fn vanish(self) {}

    /// For a worker on threads of its own.
    pub(crate) fn into_blocking(self) -> std::net::TcpListener {
        let listener = self.listener.into_std().expect("a listener");
        listener.set_nonblocking(false).expect("a listener");
        listener
    }
}

/// One end of a connection.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
}

/// The head of a message.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) text: String,
}

impl Head {
    pub(crate) fn first_line(&self) -> &str {
        self.text.lines().next().expect("a line")
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self.first_line().split(' ').nth(1).expect("a status");
        status.parse().expect("a number")
    }

    /// All the lines of a header, in order.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        self.text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect()
    }

    /// The only line of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let values = self.headers(name);
        assert!(values.len() <= 1, "one {name}: {}", self.text);
        values.first().copied()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream }
    }

    /// Reads a head, and nothing behind it.
    pub(crate) async fn head(&mut self) -> Head {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match soon("a head", self.stream.read_u8()).await {
                Ok(byte) => head.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&head)),
            }
        }
        Head {
            text: String::from_utf8(head).expect("text"),
        }
    }

    pub(crate) async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        soon("more bytes", self.stream.read_exact(&mut bytes))
            .await
            .expect("more");
        bytes
    }

    /// Reads what is expected.
    pub(crate) async fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let read = self.read(expected.len()).await;
        assert_eq!(
            String::from_utf8_lossy(&read),
            String::from_utf8_lossy(expected)
        );
    }

    /// Reads a head and a body whose length it says.
    pub(crate) async fn response(&mut self) -> (Head, String) {
        let head = self.head().await;
        let length = head
            .header("content-length")
            .map_or(0, |length| length.parse().expect("a number"));
        let body = self.read(length).await;
        (head, String::from_utf8(body).expect("text"))
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("open");
        self.stream.flush().await.expect("open");
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.expect("open");
    }

    /// Reads to the end of the connection, whichever way it ends.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = soon("an end", self.stream.read_to_end(&mut rest)).await;
        rest
    }

    /// Whether there is nothing to read, not even an end. It looks only once.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.stream.read_u8().now_or_never().is_none()
    }
}

/// What has to come soon.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match Domain::real().timeout(SOON, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} has not come"),
    }
}

/// Whether a JSON body says `error`.
pub(crate) fn says(body: &str, error: &str) -> bool {
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    body == serde_json::json!({ "error": error })
}
