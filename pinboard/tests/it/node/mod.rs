//! A whole node, in the process of its test.

mod worker;

use std::sync::Arc;
use std::time::Duration;

use pinboard::Pinboard;
use pinboard::config::PostgresTarget;
use pinboard::node::StartError;
use pinboard::passport::Passport;
use pinboard::settings::Settings;
use pinboard::store::{MemoryStore, StoreOptions};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher as _, HttpFetcher};
use pinned_domain::Domain;
use pinned_testing::PostgresServer;
use serde_json::Value;
use tokio::net::TcpListener;
use url::Url;

use worker::Worker;

const TOKEN: &str = "t0ken";
/// Short, and with it the time after the start in which nothing new is placed.
const LEASE_TTL: Duration = Duration::from_millis(500);
/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(20);

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.lease_ttl = LEASE_TTL;
    settings.sweep_interval = Duration::from_millis(50);
    settings
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a port")
}

async fn get(pinboard: &Pinboard, path: &str) -> Result<Fetched, FetchError> {
    let url = format!("http://{}{path}", pinboard.address());
    let mut fetch = Fetch::get(Url::parse(&url).expect("a URL"));
    let token = format!("Bearer {TOKEN}").parse().expect("a header");
    fetch.headers.insert("authorization", token);
    HttpFetcher::new(Domain::real()).fetch(fetch).await
}

async fn json(pinboard: &Pinboard, path: &str) -> Value {
    let answer = get(pinboard, path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// Looks again and again until `holds`.
async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let domain = Domain::real();
    let looking = async {
        while !holds().await {
            domain.sleep(Duration::from_millis(10)).await;
        }
    };
    domain.timeout(SOON, looking).await.expect("in time");
}

// P1.1, P1.4
#[tokio::test]
async fn a_node_in_memory_takes_requests_to_its_workers() {
    let starting = Pinboard::builder()
        .memory()
        .settings(settings())
        .token(TOKEN);
    let pinboard = starting.serve(listener().await).await.expect("a node");
    assert_eq!(pinboard.token(), Some(TOKEN));
    assert!(pinboard.settings().dev && pinboard.store().starts_with("memory"));
    let worker = Worker::register(pinboard.address(), TOKEN, "c-1").await;
    // P4.4: nothing new is placed at first.
    until(async || {
        get(&pinboard, "/rooms/blue/where")
            .await
            .is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let answer = json(&pinboard, "/rooms/blue/where?x=%2F").await;
    assert_eq!(answer["path"], "/rooms/blue/where?x=%2F");
    assert_eq!(answer["worker"], "c-1");
    assert!(
        answer["epoch"]
            .as_str()
            .is_some_and(|epoch| epoch.parse::<u64>().is_ok()),
        "{answer}"
    );

    let workers = json(&pinboard, "/registry/workers").await;
    assert_eq!(workers["workers"][0]["clientId"], "c-1");
    let health = json(&pinboard, "/registry/health").await;
    assert!(
        health["resolutions"]["placed"].as_u64() >= Some(1),
        "{health}"
    );
    assert!(
        health["connections"]["total"].as_u64() >= Some(1),
        "{health}"
    );
    assert!(
        health["store"]["roundTrips"]["claim"]["count"].as_u64() >= Some(1),
        "{health}"
    );
    assert!(health["leases"]["sweeper"]["node"].is_string(), "{health}");
    drop(worker);
    pinboard.shutdown().await;
}

// P1.1
#[tokio::test]
async fn two_nodes_on_one_store_are_one_fleet() {
    let options = StoreOptions {
        lease_ttl: LEASE_TTL,
        quarantine: LEASE_TTL,
        shards: 1,
    };
    let store = MemoryStore::new(options, Domain::real());
    let node = async || {
        Pinboard::builder()
            .store(Arc::new(store.node()))
            .settings(settings())
            .passport(Passport::dev(TOKEN).expect("a token"))
            .serve(listener().await)
            .await
            .expect("a node")
    };
    let (a, b) = (node().await, node().await);
    let _worker = Worker::register(a.address(), TOKEN, "c-1").await;
    // P2.4: the other node sees it as well, and both agree on the holder.
    until(async || {
        get(&b, "/rooms/blue/where")
            .await
            .is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let (seen_a, seen_b) = (
        json(&a, "/rooms/blue/where").await,
        json(&b, "/rooms/blue/where").await,
    );
    assert_eq!(seen_a, seen_b);
    a.shutdown().await;
    assert_eq!(json(&b, "/rooms/blue/where").await, seen_b);
    b.shutdown().await;
}

// P1.4
#[tokio::test]
async fn a_shared_store_needs_a_passport() {
    let options = StoreOptions {
        lease_ttl: LEASE_TTL,
        quarantine: LEASE_TTL,
        shards: 1,
    };
    let store = Arc::new(MemoryStore::new(options, Domain::real()));
    let refused = Pinboard::builder()
        .store(store)
        .serve(listener().await)
        .await;
    assert!(
        matches!(refused, Err(StartError::NoPassport)),
        "{refused:?}"
    );
}

// P1.6
#[tokio::test]
async fn a_node_that_stops_is_not_ready_and_then_gone() {
    let starting = Pinboard::builder().memory().token(TOKEN);
    let pinboard = starting.serve(listener().await).await.expect("a node");
    let address = pinboard.address();
    assert_eq!(
        get(&pinboard, "/readyz").await.expect("an answer").status,
        200
    );
    let readiness = pinboard.readiness().clone();
    let stopping = Domain::real().spawn(pinboard.shutdown());
    until(async || readiness.state() == pinboard::operators::NodeState::Stopping).await;
    let url = Url::parse(&format!("http://{address}/readyz")).expect("a URL");
    // New connections are still answered for a moment.
    let answer = HttpFetcher::new(Domain::real())
        .fetch(Fetch::get(url.clone()))
        .await;
    assert_eq!(answer.expect("an answer").status, 503);
    stopping.await.expect("no panic");
    let answer = HttpFetcher::new(Domain::real())
        .fetch(Fetch::get(url))
        .await;
    assert!(matches!(answer, Err(FetchError::Connect(_))), "{answer:?}");
}

#[tokio::test]
async fn a_node_that_is_dropped_is_gone() {
    let starting = Pinboard::builder().memory().token(TOKEN);
    let pinboard = starting.serve(listener().await).await.expect("a node");
    let url = Url::parse(&format!("http://{}/healthz", pinboard.address())).expect("a URL");
    drop(pinboard);
    until(async || {
        let answer = HttpFetcher::new(Domain::real())
            .fetch(Fetch::get(url.clone()))
            .await;
        answer.is_err()
    })
    .await;
}

// P8.1, P8.2
#[tokio::test]
async fn durable_work_is_woken_without_a_request() {
    let dsn = PostgresServer::shared().await.create_database().await;
    let (client, connection) = tokio_postgres::connect(&dsn, tokio_postgres::NoTls)
        .await
        .expect("a server");
    drop(Domain::real().spawn(connection));
    let above: i64 = 1 << 60;
    client
        .batch_execute(&format!(
            "CREATE TABLE pinned_epoch (ns TEXT, id TEXT, epoch BIGINT, PRIMARY KEY (ns, id)); \
             CREATE TABLE pinned_tray_index (ns TEXT, id TEXT, tray_ns TEXT, tray_id TEXT, marked BOOLEAN, doc JSONB, \
                 env TEXT DEFAULT '*', hostname TEXT DEFAULT '*', PRIMARY KEY (ns, id, tray_ns, tray_id)); \
             INSERT INTO pinned_epoch VALUES ('/rooms', 'blue', {above}); \
             INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc) VALUES \
                 ('/rooms', 'blue', 'mail', '', true, '{{}}'), ('/rooms', 'rest', 'mail', '', false, '{{}}')"
        ))
        .await
        .expect("tables");
    let starting = Pinboard::builder()
        .memory()
        .settings(settings())
        .token(TOKEN)
        .scanner(PostgresTarget::parse(&dsn).expect("a DSN"));
    let pinboard = starting.serve(listener().await).await.expect("a node");
    let worker = Worker::register(pinboard.address(), TOKEN, "c-1").await;
    until(async || !worker.wakes().is_empty()).await;
    let wakes = worker.wakes();
    assert!(
        wakes.iter().all(|(path, _)| path == "/rooms/blue/_wake"),
        "{wakes:?}"
    );
    // P4.3: no request either is placed below what the durable store has seen.
    assert!(wakes[0].1 > above.unsigned_abs(), "{wakes:?}");
    let answer = json(&pinboard, "/rooms/green/where").await;
    let epoch: u64 = answer["epoch"]
        .as_str()
        .expect("digits")
        .parse()
        .expect("digits");
    assert!(epoch > above.unsigned_abs(), "{answer}");
    pinboard.shutdown().await;
}
