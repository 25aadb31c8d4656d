//! A fleet of real processes on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use pinned_testing::{PostgresServer, RedisServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::activity::{self, Witness};
use super::history::{self, History};
use super::lives::{self, Lives};
use super::process::Running;

/// The token of workers and operators.
pub(super) const TOKEN: &str = "fleet-test-token";
/// How long anything may take that is bound to happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What a fleet is made of.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) workers: usize,
    pub(super) lease_ttl: Duration,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            nodes: 1,
            workers: 2,
            lease_ttl: Duration::from_secs(2),
        }
    }
}

/// A fleet of real processes on loopback. Dropping it checks what they did, and ends all of them.
pub(super) struct Rig {
    pub(super) size: Size,
    pub(super) redis: RedisServer,
    pub(super) postgres: PostgresServer,
    pub(super) nodes: Vec<Member>,
    pub(super) workers: Vec<Member>,
    pub(super) http: reqwest::Client,
    /// The names of processes that are not of this edition.
    pub(super) python: Vec<String>,
    dsn: String,
    history: History,
    folder: TempDir,
}

/// A process with an address of its own, which it keeps across restarts.
pub(super) struct Member {
    pub(super) port: u16,
    pub(super) running: Option<Running>,
    pub(super) name: String,
}

impl Member {
    pub(super) fn new(name: String) -> Self {
        Self {
            port: free_port(),
            running: None,
            name,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn process(&mut self) -> &mut Running {
        self.running.as_mut().expect("it runs")
    }

    pub(super) fn kill(&mut self) {
        self.running = None;
    }
}

impl Rig {
    /// Starts all of it, and waits until the workers are registered and ids can be placed.
    pub(super) async fn start(size: Size) -> Self {
        let redis = RedisServer::start().await;
        let postgres = PostgresServer::start().await;
        let dsn = postgres.create_database().await;
        let history = History::keep(&postgres, &dsn).await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut rig = Self {
            nodes: (0..size.nodes)
                .map(|index| Member::new(format!("pinboard-{index}")))
                .collect(),
            workers: (0..size.workers)
                .map(|index| Member::new(format!("worker-{index}")))
                .collect(),
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("a client"),
            size,
            redis,
            postgres,
            python: Vec::new(),
            dsn,
            history,
            folder,
        };
        for index in 0..size.nodes {
            rig.start_node(index);
        }
        for index in 0..size.workers {
            rig.start_worker(index);
        }
        rig.settled().await;
        rig
    }

    pub(super) fn start_node(&mut self, index: usize) {
        let mut command = Command::new(pinboard());
        let passport = json!({ "providers": [{ "type": "staticToken", "id": "test", "keys": [{
            "name": "all", "token": TOKEN, "scopes": ["pinboard:worker", "pinboard:operator"],
            "claims": { "pinboard": {
                "namespaces": ["*"], "allowedBackendHosts": ["127.0.0.0/8"], "hostnames": ["*"], "envs": ["*"],
            } },
        }] }] });
        let node = &mut self.nodes[index];
        clean(&mut command)
            .env("PORT", node.port.to_string())
            .env("BIND", "127.0.0.1")
            .env("REDIS_URL", self.redis.url())
            .env("PINBOARD_PASSPORT", passport.to_string())
            .env(
                "PINBOARD_LEASE_TTL_MS",
                self.size.lease_ttl.as_millis().to_string(),
            )
            .env("PINBOARD_SWEEP_INTERVAL_MS", "300")
            .env("PINBOARD_DURABILITY_POSTGRES_URL", &self.dsn);
        let log = self.folder.path().join(&node.name);
        node.running = Some(Running::start(command, &log));
    }

    /// Starts a worker of the node with the same index, modulo their number.
    pub(super) fn start_worker(&mut self, index: usize) {
        let registry = self.nodes[index % self.nodes.len()].url();
        let advertised = self.workers[index].url();
        self.start_worker_through(index, &registry, &advertised);
    }

    /// The same, where each side reaches the other by another address.
    pub(super) fn start_worker_through(&mut self, index: usize, registry: &str, advertised: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleet_worker"));
        let worker = &self.workers[index];
        let ttl = self.size.lease_ttl;
        clean(&mut command)
            .env("PORT", worker.port.to_string())
            .env("BIND", "127.0.0.1")
            .env("PINBOARD_URL", registry)
            .env("PINBOARD_TOKEN", TOKEN)
            .env("ADVERTISE_URL", advertised)
            .env("PINNED_STORE", &self.dsn)
            .env("ACTIVITY_LOG", self.activity_log())
            .env("HEARTBEAT_MS", (ttl / 5).as_millis().to_string())
            .env("LEASE_BUFFER_MS", (ttl / 4).as_millis().to_string())
            .env("PINNED_PROBE_PORT", "0")
            .env("DRAIN_MS", "10000");
        let log = self.folder.path().join(&worker.name);
        let witness = self.witness();
        self.workers[index].running = Some(Running::start_watched(command, &log, witness));
    }

    /// Writes down what is done to the processes of workers.
    pub(super) fn witness(&self) -> Witness {
        Witness::new(self.activity_log())
    }

    /// Where a process writes what it says.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn dsn(&self) -> &str {
        &self.dsn
    }

    /// What the database remembers, and the way to ask it for more.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn activity_log(&self) -> PathBuf {
        self.folder.path().join("activity")
    }

    pub(super) fn url(&self, path: &str) -> String {
        self.url_of(0, path)
    }

    pub(super) fn url_of(&self, node: usize, path: &str) -> String {
        format!("{}{path}", self.nodes[node].url())
    }

    /// Asks the registry of a node, as an operator.
    pub(super) async fn operate(&self, node: usize, path: &str) -> Option<Value> {
        let asked = self.http.get(self.url_of(node, path)).bearer_auth(TOKEN);
        let answer = asked.timeout(Duration::from_secs(5)).send().await.ok()?;
        answer.json().await.ok()
    }

    /// Sends an operator's order, and gives the status and the answer.
    pub(super) async fn order(&self, path: &str, order: &Value) -> (u16, Value) {
        let answer = self
            .http
            .post(self.url(path))
            .bearer_auth(TOKEN)
            .header("content-type", "application/json")
            .body(order.to_string())
            .send()
            .await
            .expect("the node answers");
        let status = answer.status().as_u16();
        let body = answer.bytes().await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Waits until every node sees as many workers as run, and places ids.
    pub(super) async fn settled(&self) {
        let running = self
            .workers
            .iter()
            .filter(|worker| worker.running.is_some())
            .count();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.running.is_none() {
                continue;
            }
            self.until(
                &format!("node {index} sees {running} workers"),
                async || {
                    let listed = self.operate(index, "/registry/workers").await?;
                    let workers = listed["workers"].as_array()?;
                    (workers.len() == running).then_some(())
                },
            )
            .await;
            if running == 0 {
                continue;
            }
            self.until(&format!("node {index} places ids"), async || {
                let probe = self.http.get(self.url_of(index, "/ledgers/probe/who"));
                probe.send().await.ok()?.status().is_success().then_some(())
            })
            .await;
        }
    }

    /// Asks again and again until there is an answer; fails with the logs of the fleet.
    pub(super) async fn until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            if Instant::now() >= deadline {
                panic!("not within {PATIENCE:?}: {what}\n{}", self.logs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The ends of all logs.
    pub(super) fn logs(&self) -> String {
        const LINES: usize = 30;
        let mut text = String::new();
        let members = self.nodes.iter().chain(&self.workers);
        for name in members.map(|member| &member.name).chain(&self.python) {
            let log = std::fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
            text += &format!("--- {name}\n{last}\n");
        }
        text
    }

    /// What an id has executed so far: items, and the attempts that they took.
    pub(super) async fn executed(&self, node: usize, id: &str) -> Option<Value> {
        let asked = self.http.get(self.url_of(node, &format!("/ledgers/{id}")));
        let answer = asked.timeout(Duration::from_secs(5)).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let progress: Value = answer.json().await.ok()?;
        Some(progress["executed"].clone())
    }

    /// Checks what the workers wrote down so far: one live instance per id. How many activations there were.
    pub(super) fn check_activity(&self) -> usize {
        self.lives().activations
    }

    fn lives(&self) -> Lives {
        let lines = activity::read(&self.activity_log());
        lives::check(&lines).unwrap_or_else(|broken| panic!("{broken}\n{}", self.logs()))
    }
}

/// Every story ends with this, whatever it was about.
impl Drop for Rig {
    fn drop(&mut self) {
        // The test has failed already.
        if std::thread::panicking() {
            return;
        }
        // In this order: whoever has written since is known to have been set up.
        let entries = self.history.read();
        let Lives {
            activations,
            excused,
            owners,
        } = self.lives();
        let writes = history::check(&entries, owners)
            .unwrap_or_else(|broken| panic!("{broken}\n{}", self.logs()));
        println!("checked: {activations} activations, {writes} writes, {excused} excused");
    }
}

/// Nothing of the surrounding environment but what a process needs to run.
pub(super) fn clean(command: &mut Command) -> &mut Command {
    command.env_clear();
    for name in ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// The program `pinboard`.
pub(super) fn pinboard() -> PathBuf {
    built("pinboard", "pinboard")
}

/// The program of another package of the workspace, which is built first.
fn built(package: &str, name: &str) -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT
        .get_or_init(|| crate::executable::executable(package, name))
        .clone()
}

/// Below the ports that clients are given, so that nobody takes it while its process is down.
pub(super) fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};

    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 12_000 + (std::process::id() as u16 % 97) * 180 + offset % 180;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
