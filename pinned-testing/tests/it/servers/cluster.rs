//! A private Redis Cluster.

use pinned_testing::{RedisCluster, RedisOptions, RedisPersistence, RedisServer};

use super::is_listening;

/// Keys whose slots are those of the first, the second and the third node.
const KEYS: [&str; 3] = ["b", "c", "a"];

async fn info(node: &RedisServer) -> String {
    node.cli(&["CLUSTER", "INFO"]).await
}

#[tokio::test]
async fn a_cluster_is_whole_when_it_has_started() {
    let cluster = RedisCluster::shared().await;
    let ports: Vec<u16> = cluster.nodes().iter().map(RedisServer::port).collect();
    let url = format!(
        "redis+cluster://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}",
        ports[0], ports[1], ports[2]
    );
    assert_eq!(cluster.url(), url);
    for node in cluster.nodes() {
        let info = info(node).await;
        let told = [
            "cluster_state:ok",
            "cluster_slots_assigned:16384",
            "cluster_slots_ok:16384",
            "cluster_known_nodes:3",
            "cluster_size:3",
        ];
        for line in told {
            assert!(info.lines().any(|said| said.trim_end() == line), "{info}");
        }
        let slots = node.cli(&["CLUSTER", "SLOTS"]).await;
        for port in &ports {
            assert!(slots.contains(&format!("127.0.0.1\n{port}\n")), "{slots}");
        }
    }
}

#[tokio::test]
async fn each_node_serves_its_slots() {
    let cluster = RedisCluster::shared().await;
    for (node, key) in cluster.nodes().iter().zip(KEYS) {
        assert_eq!(node.cli(&["SET", key, "value"]).await, "OK");
    }
    // From any node on, when redirections are followed.
    let answer = cluster.nodes()[0].cli(&["-c", "GET", KEYS[2]]).await;
    assert_eq!(answer, "value");
}

#[tokio::test]
async fn a_node_that_was_killed_comes_back_to_its_cluster() {
    let persistence = RedisPersistence::Aof;
    let cluster = RedisCluster::start_with(RedisOptions { persistence }).await;
    let nodes = cluster.nodes();
    nodes[1].cli(&["SET", KEYS[1], "value"]).await;

    cluster.kill_node(1).await;
    assert!(!is_listening(nodes[1].port()));
    cluster.kill_node(2).await;
    // It cannot wait for the cluster while another one is down.
    cluster.restart_node(1).await;
    cluster.restart_node(2).await;
    for node in nodes {
        assert!(info(node).await.starts_with("cluster_state:ok"));
    }
    assert_eq!(nodes[1].cli(&["GET", KEYS[1]]).await, "value");
}
