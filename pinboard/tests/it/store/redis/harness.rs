//! A private Redis, for the suite of registry stores.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinboard::store::{RedisStore, RegistryStore, StoreOptions};
use pinboard::testing::conformance::{RegistryFleet, RegistryHarness};
use pinned_domain::Domain;
use pinned_testing::{RedisCluster, RedisServer};

use super::support::open;

/// What the fleets of the suite stand on, one after the other.
#[derive(Clone)]
pub(super) enum Servers {
    Single(Arc<RedisServer>),
    Cluster(Arc<RedisCluster>),
}

pub(super) struct OnRedis(pub(super) Servers);

struct Fleet {
    servers: Servers,
    options: StoreOptions,
    nodes: Mutex<Vec<Arc<RedisStore>>>,
}

impl Servers {
    pub(super) async fn single() -> Self {
        Self::Single(Arc::new(RedisServer::start().await))
    }

    pub(super) async fn cluster() -> Self {
        Self::Cluster(Arc::new(RedisCluster::start().await))
    }

    fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
        }
    }

    fn all(&self) -> Vec<&RedisServer> {
        match self {
            Self::Single(server) => vec![server],
            Self::Cluster(cluster) => cluster.nodes().iter().collect(),
        }
    }

    /// A copy of what a single server has.
    fn copy_of(folder: &str) -> [PathBuf; 2] {
        ["dump.rdb", "copy.rdb"].map(|file| PathBuf::from(folder).join(file))
    }
}

impl RegistryHarness for OnRedis {
    fn domain(&self) -> Domain {
        Domain::real()
    }

    fn virtual_time(&self) -> bool {
        false
    }

    fn fleet(&self, options: StoreOptions) -> BoxFuture<'_, Box<dyn RegistryFleet>> {
        Box::pin(async move {
            for server in self.0.all() {
                // What the fleet before has sent, and has not been read yet, goes with its connections.
                server
                    .cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
                    .await;
                server.flush().await;
            }
            Box::new(Fleet {
                servers: self.0.clone(),
                options,
                nodes: Mutex::default(),
            }) as Box<dyn RegistryFleet>
        })
    }
}

impl RegistryFleet for Fleet {
    fn node(&self) -> BoxFuture<'_, Arc<dyn RegistryStore>> {
        Box::pin(async {
            let node = open(&self.servers.url(), self.options);
            self.nodes.lock().push(Arc::clone(&node));
            node as Arc<dyn RegistryStore>
        })
    }

    fn wipe(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for server in self.servers.all() {
                server.flush().await;
            }
        })
    }

    fn copy(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let Servers::Single(server) = &self.servers else {
                return false;
            };
            server.cli(&["SAVE"]).await;
            let [dump, copy] = Servers::copy_of(&folder(server).await);
            std::fs::copy(dump, copy).expect("a copy can be kept");
            true
        })
    }

    fn restart_from_copy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Servers::Single(server) = &self.servers else {
                return;
            };
            let [dump, copy] = Servers::copy_of(&folder(server).await);
            server.kill().await;
            std::fs::copy(copy, dump).expect("the copy can be put back");
            server.restart().await;
            let nodes = self.nodes.lock().clone();
            for node in nodes {
                node.prepare().await.expect("it comes back");
            }
        })
    }
}

/// Where a server keeps its files.
pub(super) async fn folder(server: &RedisServer) -> String {
    let answer = server.cli(&["CONFIG", "GET", "dir"]).await;
    let folder = answer.lines().nth(1).expect("it has a folder");
    folder.to_owned()
}
