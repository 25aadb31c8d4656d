//! A private Redis Cluster.

use futures_util::future::join_all;
use tokio::sync::OnceCell;

use super::{RedisOptions, RedisServer};

/// The share of the 16384 slots of each node, first and last.
const SLOTS: [[&str; 2]; 3] = [["0", "5460"], ["5461", "10922"], ["10923", "16383"]];

/// A Redis Cluster of three primaries without replicas, on free ports of 127.0.0.1 and in temporary folders.
///
/// As in production a slot that no node serves makes every node refuse every slot (`CLUSTERDOWN`), once the others have
/// taken the node for failed, which is after 2 s.
///
/// It ends with this value, and also when the process ends in any other way.
///
/// ```no_run
/// # use pinned_testing::RedisCluster;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let cluster = RedisCluster::start().await;
/// assert!(cluster.url().starts_with("redis+cluster://127.0.0.1:"));
///
/// cluster.kill_node(2).await;
/// cluster.restart_node(2).await;
/// let info = cluster.nodes()[0].cli(&["CLUSTER", "INFO"]).await;
/// assert!(info.starts_with("cluster_state:ok"));
/// # }
/// ```
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts one whose nodes keep no keys on the disk. Takes a little over 2 s: Redis waits as long before a node
    /// believes that all is well.
    ///
    /// # Panics
    ///
    /// When Redis is not installed, which names the package, or does not start, which shows its log.
    pub async fn start() -> Self {
        Self::start_with(RedisOptions::default()).await
    }

    /// Starts one whose nodes have these settings.
    ///
    /// # Panics
    ///
    /// As [`RedisCluster::start`].
    pub async fn start_with(options: RedisOptions) -> Self {
        let started = join_all(SLOTS.map(|_| RedisServer::start_node(options))).await;
        let (nodes, buses): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let cluster = Self { nodes };
        cluster.assign_slots().await;
        cluster.introduce(&buses).await;
        cluster.ready().await;
        cluster
    }

    /// The one of this test binary, started by whoever asks first. Tests run beside each other: leave it running, and
    /// use keys that are the test's own.
    ///
    /// # Panics
    ///
    /// As [`RedisCluster::start`].
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<RedisCluster> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Its address, with each node: `redis+cluster://127.0.0.1:P1,127.0.0.1:P2,127.0.0.1:P3`.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()))
            .collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// The three nodes; the first has the lowest slots.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Ends a node with SIGKILL, as [`RedisServer::kill`]. The others learn of it later.
    ///
    /// # Panics
    ///
    /// When there is no node of this index.
    ///
    /// # Cancel safety
    ///
    /// It is ended even if the future is dropped.
    pub async fn kill_node(&self, index: usize) {
        self.nodes[index].kill().await;
    }

    /// Starts a node again, as [`RedisServer::restart`]. If all nodes run then, waits until the cluster is
    /// [ready](Self::ready).
    ///
    /// # Panics
    ///
    /// When there is no node of this index, or it does not start.
    ///
    /// # Cancel safety
    ///
    /// It is restarted even if the future is dropped.
    pub async fn restart_node(&self, index: usize) {
        self.nodes[index].restart().await;
        if self.nodes.iter().all(|node| node.pid().is_some()) {
            self.ready().await;
        }
    }

    /// Waits until each node says `cluster_state:ok`, which is at once when nothing has happened.
    ///
    /// # Panics
    ///
    /// When a node does not run, or does not say so within a minute.
    pub async fn ready(&self) {
        for node in &self.nodes {
            node.wait_until_cluster_ok().await;
        }
    }

    async fn assign_slots(&self) {
        for ((node, [first, last]), epoch) in self.nodes.iter().zip(SLOTS).zip(1..) {
            // One of its own each: nodes that find they share one settle that later, by changing their epochs.
            let epoch = format!("{epoch}");
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await;
        }
    }

    /// The first node meets the others, and those each other through it.
    async fn introduce(&self, buses: &[u16]) {
        for (node, bus) in self.nodes.iter().zip(buses).skip(1) {
            let (port, bus) = (node.port().to_string(), bus.to_string());
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
            self.nodes[0].cli(&meet).await;
        }
    }
}
