//! A worker that does what the wire says, over loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};
use pinboard::events::Events;
use pinboard::passport::Passport;
use pinboard::sessions::{Registry, SystemResolver};
use pinboard::settings::Settings;
use pinboard::store::{EndMode, MemoryStore, PlacementKey, RegistryStore, SessionId, StoreOptions};
use pinboard::testing::{HttpRegistry, ScriptedWorker, WorkerOptions};
use pinboard::upstream::{Fetch, Fetcher as _, HttpFetcher};
use pinboard::workers::Workers;
use pinned_domain::Domain;
use pinned_wire::attestation::{Claims, mint};
use pinned_wire::headers::{ATTESTATION, EPOCH};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::rig::{Node, World};

const TOKEN: &str = "the-token-of-a-dev-node";

struct Scene {
    world: World,
    node: Node,
    fetcher: HttpFetcher,
    address: SocketAddr,
}

impl Scene {
    async fn new() -> Self {
        let domain = Domain::real();
        let settings = Settings::default();
        let store: Arc<dyn RegistryStore> = Arc::new(MemoryStore::new(
            StoreOptions {
                lease_ttl: settings.lease_ttl,
                quarantine: Duration::ZERO,
                shards: 4,
            },
            domain.clone(),
        ));
        let fetcher = HttpFetcher::new(domain.clone());
        let registry = Registry {
            store: Arc::clone(&store),
            passport: Passport::dev(TOKEN).expect("a token"),
            workers: Workers::new(Arc::clone(&store), domain.clone(), &settings),
            fetcher: Arc::new(fetcher.clone()),
            events: Events::new(),
            settings: Arc::new(settings),
            domain: domain.clone(),
        };
        let node = Node::over(registry, Arc::new(SystemResolver::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = node.router.clone();
        domain.spawn(async move { axum::serve(listener, router).await });
        Self {
            world: World::over(store, domain),
            node,
            fetcher,
            address,
        }
    }

    /// A worker that does everything by itself, at a name that has to be looked up.
    async fn worker(&self) -> ScriptedWorker {
        let domain = self.world.domain.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let options = WorkerOptions::new("worker", format!("http://127.0.0.1:{port}"))
            .pace(Duration::from_millis(50), Duration::from_secs(5));
        let registry = HttpRegistry::tcp(self.address, TOKEN, domain.clone());
        let worker = ScriptedWorker::new(options, registry, domain.clone());
        worker.start();
        let serving = worker.clone();
        domain.spawn(async move { serving.serve(listener).await });
        worker.registered().await;
        worker
    }

    /// Has an instance live in the worker; its epoch.
    async fn activate(&self, worker: &ScriptedWorker, id: &str) -> u64 {
        let session = worker.session().expect("it is registered");
        let epoch = self.world.place(&counter(id), &session).await;
        assert_eq!(self.ask(worker, id, epoch).await, StatusCode::OK);
        epoch
    }

    async fn ask(&self, worker: &ScriptedWorker, id: &str, epoch: u64) -> StatusCode {
        let session = worker.session().expect("it is registered");
        let view = self.node.registry.workers.get(&SessionId::new(&*session));
        let view = view.expect("it lives").view.read().clone();
        let url = format!("{}/counters/{id}/increment", view.record.advertise_url);
        let claims = Claims::new(&*session, self.world.domain.now());
        let token = mint(worker.secret().expose(), &claims);
        let mut fetch = Fetch::get(url.parse().expect("a URL"));
        fetch.method = Method::POST;
        fetch.addresses = Some(view.record.addresses.clone());
        fetch
            .headers
            .insert(ATTESTATION, HeaderValue::from_str(&token).expect("a token"));
        fetch.headers.insert(EPOCH, HeaderValue::from(epoch));
        self.fetcher.fetch(fetch).await.expect("an answer").status
    }

    async fn order(&self, path: &str, body: Value) -> Value {
        self.node.post(path, TOKEN, &body).await.ok()
    }

    /// Looks until it is so. Every step of the worker is a few of its heartbeats away.
    async fn until(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        for _ in 0..1_000 {
            if so().await {
                return;
            }
            self.world.wait(Duration::from_millis(10)).await;
        }
        panic!("{what}: not within 10 s");
    }
}

fn counter(id: &str) -> PlacementKey {
    PlacementKey::single("/counters", id)
}

// W17.1, W17.2, W17.4
#[tokio::test]
async fn a_worker_registers_keeps_its_session_loses_it_and_leaves() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let worker = scene.worker().await;
    let first = worker.session().expect("it is registered");
    let epoch = scene.activate(&worker, "blue").await;

    // Its session is lost: it registers again, and what lives in it lives on.
    let id = SessionId::new(&*first);
    let ended = world.store.end_session(&id, EndMode::AtExpiry).await;
    assert!(ended.expect("the store"));
    scene
        .until("a new session", async || {
            worker.session().is_some_and(|session| session != first)
        })
        .await;
    let second = worker.session().expect("it is registered");
    let row = world.row(&counter("blue")).await.expect("a row");
    assert_eq!((row.session.as_str(), row.epoch), (&*second, epoch));
    assert_eq!(scene.ask(&worker, "blue", epoch).await, StatusCode::OK);
    assert_eq!(worker.log().activations().len(), 1, "it never ended");

    let stats = scene.node.get("/registry/stats", TOKEN).await.ok();
    assert_eq!(stats["workers"][0]["clientId"], json!(worker.client_id()));
    assert_eq!(stats["workers"][0]["instances"][0]["id"], json!("blue"));
    let overview = scene.node.get("/registry/overview", TOKEN).await.ok();
    assert_eq!(
        (&overview["workers"], &overview["degraded"]),
        (&json!(1), &json!(0))
    );

    worker.shutdown().await;
    assert!(
        world.row(&counter("blue")).await.is_none(),
        "it was handed back"
    );
    let workers = scene.node.get("/registry/workers", TOKEN).await.ok();
    assert_eq!(workers, json!({"workers": []}));
    worker.log().assert_no_overlap();
}

// P2.10, P3.4, P3.5, W5, W12
#[tokio::test]
async fn a_worker_follows_wind_downs_and_drains() {
    let scene = Scene::new().await;
    let world = &scene.world;
    let worker = scene.worker().await;
    for id in ["blue", "red", "green"] {
        scene.activate(&worker, id).await;
    }

    // Idle instances let go at once.
    let order = json!({"namespace": "/counters", "id": "blue", "deadline": 60});
    assert_eq!(
        scene.order("/registry/wind_down", order).await,
        json!({"queued": true})
    );
    scene
        .until("the id is handed back", async || {
            world.row(&counter("blue")).await.is_none()
        })
        .await;
    assert!(world.row(&counter("red")).await.is_some());

    let order = json!({"clientId": worker.client_id(), "deadline": null});
    scene.order("/registry/drain", order).await;
    scene
        .until("all ids are handed back", async || {
            worker.instances().is_empty() && world.row(&counter("red")).await.is_none()
        })
        .await;
    let order = json!({"clientId": worker.client_id()});
    scene.order("/registry/undrain", order).await;
    worker.shutdown().await;
    worker.log().assert_no_overlap();
}
