//! Nodes over one store, without sockets: calls go to the routers, and workers are scripts.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use pinboard::events::Events;
use pinboard::operators::{
    Connections, Figures, NodeFigures, NodeState, Operators, OperatorsOptions, Readiness,
};
use pinboard::passport::{Passport, Resolve};
use pinboard::sessions::{Registry, Sessions, SessionsOptions};
use pinboard::settings::Settings;
use pinboard::store::{
    Claim, Claimed, Event, Expected, MemoryStore, PlacementKey, RegistryStore, Row, SessionId,
    StoreOptions,
};
use pinboard::testing::{FaultyStore, StoreFaults};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinboard::workers::Workers;
use pinned_domain::Domain;
use pinned_wire::headers::PROXY_SECRET;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The lease TTL of every world.
pub(crate) const TTL: Duration = Duration::from_secs(15);

/// Tokens of the passport.
pub(crate) const WORKER: &str = "token-of-the-workers";
/// May run workers, of another namespace only.
pub(crate) const STRANGER: &str = "token-of-strangers";
/// An operator of everything.
pub(crate) const OPERATOR: &str = "token-of-operators";
/// An operator of `/rooms` only.
pub(crate) const ROOMS: &str = "token-of-the-rooms";

/// What all nodes share.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) domain: Domain,
    pub(crate) store: Arc<dyn RegistryStore>,
    pub(crate) urls: Arc<Urls>,
    pub(crate) names: Arc<Names>,
}

/// One node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) registry: Registry,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) readiness: Readiness,
    pub(crate) router: Router,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

// ===== impl World =====

impl World {
    /// A store past its quarantine.
    pub(crate) async fn new() -> Self {
        let world = Self::cold(TTL).await;
        world.domain.sleep(TTL).await;
        world
    }

    /// A store that has just come up.
    pub(crate) async fn cold(quarantine: Duration) -> Self {
        let domain = Domain::real_seeded(7);
        let options = StoreOptions {
            lease_ttl: TTL,
            quarantine,
            shards: 4,
        };
        let store = Arc::new(MemoryStore::new(options, domain.clone()));
        store.prepare().await.expect("a store");
        Self::over(store, domain)
    }

    /// The same world through a way to its store that can fail.
    pub(crate) fn faulty(&self) -> (Self, StoreFaults) {
        let (store, faults) = FaultyStore::new(Arc::clone(&self.store), self.domain.clone());
        let mut world = self.clone();
        world.store = Arc::new(store);
        (world, faults)
    }

    /// Over another store.
    pub(crate) fn over(store: Arc<dyn RegistryStore>, domain: Domain) -> Self {
        Self {
            urls: Arc::new(Urls {
                domain: domain.clone(),
                scripts: Mutex::default(),
                fetches: Mutex::default(),
            }),
            names: Arc::default(),
            store,
            domain,
        }
    }

    pub(crate) fn node(&self) -> Node {
        self.node_with(Settings::default(), &passport_json())
    }

    pub(crate) fn dev_node(&self) -> Node {
        let mut settings = Settings::default();
        settings.dev = true;
        self.node_with(settings, &passport_json())
    }

    pub(crate) fn node_with(&self, settings: Settings, passport: &Value) -> Node {
        let fetcher: Arc<dyn Fetcher> = Arc::clone(&self.urls) as _;
        let registry = Registry {
            store: Arc::clone(&self.store),
            passport: Passport::parse(&passport.to_string(), |_| None, &self.domain, &fetcher)
                .expect("a passport"),
            workers: Workers::new(Arc::clone(&self.store), self.domain.clone(), &settings),
            fetcher,
            events: Events::new(),
            settings: Arc::new(settings),
            domain: self.domain.clone(),
        };
        Node::over(registry, Arc::clone(&self.names) as _)
    }

    /// Places an id.
    pub(crate) async fn place(&self, key: &PlacementKey, session: &str) -> u64 {
        let claim = Claim {
            key: key.clone(),
            candidate: SessionId::new(session),
            expected: Expected::VacantForAnyone,
            above: 0,
        };
        match self.store.claim(claim).await.expect("the store") {
            Claimed::Placed { epoch, .. } => epoch,
            other => panic!("{key:?} cannot be placed: {other:?}"),
        }
    }

    pub(crate) async fn row(&self, key: &PlacementKey) -> Option<Row> {
        self.store.row(key).await.expect("the store")
    }

    /// Who holds an id.
    pub(crate) async fn holder(&self, key: &PlacementKey) -> Option<String> {
        Some(self.row(key).await?.session.to_string())
    }

    pub(crate) async fn wait(&self, duration: Duration) {
        self.domain.sleep(duration).await;
    }
}

/// One key for each of the tokens above.
pub(crate) fn passport_json() -> Value {
    let all = json!(["*"]);
    json!({"providers": [{"type": "staticToken", "id": "pinboard", "keys": [
        {"name": "workers", "token": WORKER, "scopes": ["pinboard:worker"],
         "claims": {"pinboard": {"namespaces": ["/rooms", "/chat"],
                                 "allowedBackendHosts": ["10.0.0.0/8", "worker.example"]}}},
        {"name": "strangers", "token": STRANGER, "scopes": ["pinboard:worker"],
         "claims": {"pinboard": {"namespaces": ["/other"], "allowedBackendHosts": all}}},
        {"name": "operators", "token": OPERATOR, "scopes": ["pinboard:operator"],
         "claims": {"pinboard": {"namespaces": all, "hostnames": all, "envs": all}}},
        {"name": "rooms", "token": ROOMS, "scopes": ["pinboard:operator"],
         "claims": {"pinboard": {"namespaces": ["/rooms"]}}},
    ]}]})
}

struct FixedFigures;

impl Figures for FixedFigures {
    fn figures(&self) -> NodeFigures {
        NodeFigures {
            resolutions: BTreeMap::from([("cached".to_owned(), 12)]),
            connections: Connections { now: 3, total: 40 },
            ..NodeFigures::default()
        }
    }
}

// ===== impl Node =====

impl Node {
    pub(crate) fn over(registry: Registry, resolver: Arc<dyn Resolve>) -> Self {
        let sessions = Sessions::new(SessionsOptions {
            registry: registry.clone(),
            resolver,
        });
        let readiness = Readiness::default();
        readiness.enter(NodeState::Serving);
        let operators = Operators::new(OperatorsOptions {
            registry: registry.clone(),
            figures: Arc::new(FixedFigures),
            render_metrics: Arc::new(|| "pinboard_workers 1\n".to_owned()),
            readiness: readiness.clone(),
            leases: vec!["sweeper"],
        });
        Node {
            router: pinboard::sessions::router(Arc::clone(&sessions))
                .merge(pinboard::operators::router(operators)),
            registry,
            sessions,
            readiness,
        }
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.send(request(Method::GET, path, token, Body::empty()))
            .await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.post_text(path, token, &body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, token: &str, body: &str) -> Answer {
        let body = Body::from(body.to_owned());
        self.send(request(Method::POST, path, token, body)).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Answer {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).expect("text"),
        }
    }

    /// What has been told since the last time that somebody asked.
    pub(crate) fn told(&self) -> Vec<Event> {
        self.registry.events.take()
    }

    /// Hands what has been told to the ring.
    pub(crate) async fn tell(&self) {
        let flushed = self.registry.events.flush(&*self.registry.store).await;
        flushed.expect("the store");
    }
}

pub(crate) fn request(method: Method, path: &str, token: &str, body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(body).expect("a request")
}

// ===== impl Answer =====

impl Answer {
    /// The body of a 200.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        self.json()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// Checks a refusal, and that it says how soon to try again exactly when it is a 503.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, error: &str) {
        assert_eq!(
            (self.status.as_u16(), self.json()["error"].as_str()),
            (status, Some(error)),
            "{}",
            self.text
        );
        let retry_after = self.headers.get(header::RETRY_AFTER);
        let seconds = retry_after.map(|value| value.to_str().expect("text").parse::<u64>());
        match status {
            503 => assert!(matches!(seconds, Some(Ok(1..))), "{seconds:?}"),
            _ => assert_eq!(seconds, None),
        }
    }

    /// Checks a refusal for what is malformed; what it says.
    #[track_caller]
    pub(crate) fn malformed(&self) -> String {
        assert_eq!(self.status, StatusCode::BAD_REQUEST, "{}", self.text);
        self.json()["error"].as_str().expect("a text").to_owned()
    }
}

// ===== workers =====

/// A worker process, as its calls show it.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) client_id: String,
    pub(crate) secret: String,
    pub(crate) namespaces: Vec<&'static str>,
    pub(crate) url: String,
}

impl Worker {
    /// A worker of `/rooms` at an address of its own, which answers for it.
    pub(crate) fn new(world: &World, number: u8) -> Self {
        let worker = Self {
            client_id: format!("client-{number}"),
            secret: format!("5ec2e7{number:02x}").repeat(8),
            namespaces: vec!["/rooms"],
            url: format!("http://10.0.0.{number}:8000"),
        };
        worker.answers(world);
        worker
    }

    /// Its URL answers for it from now on.
    pub(crate) fn answers(&self, world: &World) {
        world
            .urls
            .script(&self.url, Script::Worker(self.secret.clone()));
    }

    /// The body of a register.
    pub(crate) fn registration(&self) -> Value {
        let (challenge, value) = pair();
        json!({
            "clientId": self.client_id, "secret": self.secret, "namespaces": self.namespaces,
            "advertiseUrl": self.url, "headroom": 1024, "draining": false,
            "challenge": challenge, "challengeValue": value,
        })
    }

    pub(crate) async fn try_register(&self, node: &Node, more: Value) -> Answer {
        let body = merged(self.registration(), more);
        node.post("/registry/register", WORKER, &body).await
    }

    /// Registers; the ack.
    pub(crate) async fn register_with(&self, node: &Node, more: Value) -> Value {
        self.try_register(node, more).await.ok()
    }

    /// Registers; the session.
    pub(crate) async fn register(&self, node: &Node) -> String {
        session_of(&self.register_with(node, json!({})).await)
    }
}

/// The session of an ack.
pub(crate) fn session_of(ack: &Value) -> String {
    ack["sessionId"].as_str().expect("a session").to_owned()
}

/// The body of a heartbeat that proves its URL.
pub(crate) fn beat(session: &str) -> Value {
    let (challenge, value) = pair();
    json!({"sessionId": session, "headroom": 1024, "draining": false,
           "challenge": challenge, "challengeValue": value})
}

/// The body of a heartbeat that does not.
pub(crate) fn quiet_beat(session: &str) -> Value {
    json!({"sessionId": session, "headroom": 1024, "draining": false})
}

pub(crate) async fn heartbeat(node: &Node, body: Value) -> Answer {
    node.post("/registry/heartbeat", WORKER, &body).await
}

/// A challenge, and the value that scripted workers answer to it.
fn pair() -> (String, String) {
    let challenge = Domain::real().token_hex(16);
    let value = value_of(&challenge);
    (challenge, value)
}

fn value_of(challenge: &str) -> String {
    format!("value-of-{challenge}")
}

/// `body` with the members of `more` in place of its own; those that are `null` there are gone.
pub(crate) fn merged(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        let members = body.as_object_mut().expect("an object");
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    body
}

pub(crate) fn room(id: &str) -> PlacementKey {
    PlacementKey::single("/rooms", id)
}

// ===== the world outside =====

/// What stands behind a URL.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// A worker with this secret.
    Worker(String),
    /// Something that answers always the same.
    Fixed(u16, String),
    /// As the other, after a while.
    Slow(Duration, Box<Script>),
    /// Nothing.
    Refuses,
    /// Something that breaks off.
    Breaks,
    /// Something that never answers.
    Hangs,
    /// Something that never ends.
    Long,
}

/// What is behind URLs, and who asked for it.
pub(crate) struct Urls {
    domain: Domain,
    scripts: Mutex<HashMap<String, Script>>,
    fetches: Mutex<Vec<Fetch>>,
}

impl Urls {
    pub(crate) fn script(&self, url: &str, script: Script) {
        let origin = url::Url::parse(url).expect("a URL").origin();
        self.scripts
            .lock()
            .insert(origin.ascii_serialization(), script);
    }

    /// What was asked since the last time that somebody asked.
    pub(crate) fn asked(&self) -> Vec<Fetch> {
        std::mem::take(&mut self.fetches.lock())
    }
}

impl Fetcher for Urls {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let origin = fetch.url.origin().ascii_serialization();
        let script = self.scripts.lock().get(&origin).cloned();
        self.fetches.lock().push(fetch.clone());
        let domain = self.domain.clone();
        Box::pin(async move {
            let timeout = fetch.timeout;
            let answer = play(&domain, script.unwrap_or(Script::Refuses), &fetch);
            match domain.timeout(timeout, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(FetchError::Timeout(timeout)),
            }
        })
    }
}

async fn play(domain: &Domain, script: Script, fetch: &Fetch) -> Result<Fetched, FetchError> {
    let mut script = script;
    while let Script::Slow(after, then) = script {
        domain.sleep(after).await;
        script = *then;
    }
    match script {
        Script::Worker(secret) => Ok(worker(&secret, fetch)),
        Script::Fixed(status, body) => Ok(fetched(status, body)),
        Script::Refuses => Err(FetchError::Connect(io::ErrorKind::ConnectionRefused.into())),
        Script::Breaks => Err(FetchError::Answer("broken off".into())),
        Script::Long => Err(FetchError::TooLong(fetch.limit)),
        Script::Hangs | Script::Slow(..) => std::future::pending().await,
    }
}

/// As W10.1 to W10.3 say.
fn worker(secret: &str, fetch: &Fetch) -> Fetched {
    let given = fetch.headers.get(PROXY_SECRET);
    if given.is_none_or(|given| given != secret) {
        return fetched(403, json!({"detail": "invalid proxy secret"}).to_string());
    }
    let path = fetch.url.path();
    if path.ends_with("/_pinned/stats") {
        let stats = json!({"draining": false, "leaseFlaps": 2, "clientId": "forged", "error": "forged",
            "instances": [{"namespace": "/rooms", "id": "blue", "connections": 2},
                          {"namespace": "/rooms", "id": "red", "connections": 1}]});
        return fetched(200, stats.to_string());
    }
    let challenge = fetch
        .url
        .query_pairs()
        .find(|(name, _)| name == "challenge");
    match challenge {
        Some((_, challenge)) if path.ends_with("/_pinned/challenge") => {
            fetched(200, json!({"value": value_of(&challenge)}).to_string())
        }
        _ => fetched(404, String::new()),
    }
}

fn fetched(status: u16, body: String) -> Fetched {
    Fetched {
        status: StatusCode::from_u16(status).expect("a status"),
        headers: HeaderMap::new(),
        body: body.into(),
    }
}

/// The names that there are, and how long a lookup takes.
#[derive(Default)]
pub(crate) struct Names {
    known: Mutex<HashMap<String, Vec<IpAddr>>>,
    delay: Mutex<Option<(Domain, Duration)>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses
            .iter()
            .map(|address| address.parse().expect("an address"))
            .collect();
        self.known.lock().insert(name.to_owned(), addresses);
    }

    pub(crate) fn take_time(&self, domain: &Domain, delay: Duration) {
        *self.delay.lock() = Some((domain.clone(), delay));
    }
}

impl Resolve for Names {
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let known = self.known.lock().get(host).cloned();
        let delay = self.delay.lock().clone();
        Box::pin(async move {
            if let Some((domain, delay)) = delay {
                domain.sleep(delay).await;
            }
            known.ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
