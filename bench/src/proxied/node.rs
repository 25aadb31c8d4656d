use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    time::{Duration, Instant},
};

use super::process::{Process, free_port, workspace_binary};
use crate::Result;

/// The token of workers and operators.
pub const TOKEN: &str = "bench-token";

/// How a node is started.
pub struct NodeOptions<'a> {
    /// `memory:` or the URL of a Redis.
    pub store: &'a str,
    /// How long a worker's lease runs.
    pub lease_ttl: Duration,
    /// How many threads serve clients; by its own default, one for each processor.
    pub lanes: Option<usize>,
}

impl Default for NodeOptions<'_> {
    fn default() -> Self {
        Self {
            store: "memory:",
            lease_ttl: Duration::from_secs(15),
            lanes: None,
        }
    }
}

/// A pinboard in a process of its own, built in this program's profile.
pub struct Node {
    process: Process,
    addr: SocketAddr,
}

impl Node {
    /// Starts one and waits until it is ready.
    ///
    /// # Errors
    /// When it has not been built, or does not become ready within 10 s.
    pub fn start(options: &NodeOptions<'_>) -> Result<Self> {
        let port = free_port()?;
        let passport = format!(
            r#"{{"providers":[{{"type":"staticToken","id":"bench","keys":[{{"name":"all","token":"{TOKEN}",
                "scopes":["pinboard:worker","pinboard:operator"],"claims":{{"pinboard":{{"namespaces":["*"],
                "allowedBackendHosts":["127.0.0.0/8"],"hostnames":["*"],"envs":["*"]}}}}}}]}}]}}"#
        );
        let program = workspace_binary("pinboard")?;
        let mut command = Command::new(program);
        command
            .env("PORT", port.to_string())
            .env("BIND", "127.0.0.1")
            .env("REDIS_URL", options.store)
            .env("PINBOARD_PASSPORT", passport)
            .env(
                "PINBOARD_LEASE_TTL_MS",
                options.lease_ttl.as_millis().to_string(),
            )
            .env("LOG_LEVEL", "warn");
        match options.lanes {
            Some(lanes) => command.env("PINBOARD_LANES", lanes.to_string()),
            None => command.env_remove("PINBOARD_LANES"),
        };
        let node = Self {
            process: Process::start(&mut command)?,
            addr: (Ipv4Addr::LOCALHOST, port).into(),
        };
        node.wait_until_ready()?;
        Ok(node)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while ureq::get(self.url("/readyz")).call().is_err() {
            if Instant::now() > deadline {
                return Err("pinboard does not become ready".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until it places ids, which it does not within the quarantine of its start: until a `POST` to `path` succeeds.
    ///
    /// # Errors
    /// When that takes longer than 60 s.
    pub fn wait_until_placing(&self, path: &str) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while ureq::post(self.url(path)).send_empty().is_err() {
            if Instant::now() > deadline {
                return Err("pinboard places nothing".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of `path` on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}
