//! The network between the parts of a fleet is cut (P12.3).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::load::{Kind, Load, all_executed};
use super::rig::{Rig, Size};

/// A stretch of network that can be cut: connections end without a word, and new ones with them.
struct Relay {
    port: u16,
    whole: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Relay {
    async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let whole = Arc::new(watch::Sender::new(true));
        let state = Arc::clone(&whole);
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut near, _)) = listener.accept().await else {
                    return;
                };
                let mut state = state.subscribe();
                tokio::spawn(async move {
                    if !*state.borrow_and_update() {
                        return;
                    }
                    let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.changed() => {}
                    }
                });
            }
        });
        Self {
            port: own,
            whole,
            task,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn cut(&self) {
        self.whole.send_replace(false);
    }

    fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_loses_its_ids_and_nothing_else() {
    // P12.3, P4.6, W17.3
    let ttl = Duration::from_secs(2);
    let size = Size {
        nodes: 1,
        workers: 3,
        lease_ttl: ttl,
    };
    let mut rig = Rig::start(size).await;
    // One of the workers is reached, and reaches, through a network of its own.
    rig.workers[0].process().terminate();
    rig.workers[0]
        .process()
        .ended_within(super::rig::PATIENCE)
        .await;
    rig.workers[0].running = None;
    let up = Relay::to(rig.nodes[0].port).await;
    let down = Relay::to(rig.workers[0].port).await;
    rig.start_worker_through(0, &up.url(), &down.url());
    rig.settled().await;
    let load = Load::start(&rig, "cut", Kind::Enqueue, 4, 8);
    tokio::time::sleep(ttl / 2).await;
    // First the way to the worker alone, then the way back, then both.
    for relays in [vec![&down], vec![&up], vec![&up, &down]] {
        for relay in &relays {
            relay.cut();
        }
        tokio::time::sleep(ttl + ttl / 2).await;
        for relay in &relays {
            relay.mend();
        }
        rig.settled().await;
    }
    let outcome = load.end().await;
    assert!(outcome.items() > 0, "{:?}", outcome.errors);
    all_executed(&rig, 0, &outcome.confirmed).await;
    let activations = rig.check_activity();
    println!(
        "{} requests, {} items confirmed and executed, {activations} activations",
        outcome.sent,
        outcome.items()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_away_known_ids_are_served_and_unknown_ones_refused() {
    // P12.4
    let size = Size {
        nodes: 2,
        workers: 2,
        lease_ttl: Duration::from_secs(10),
    };
    let rig = Rig::start(size).await;
    let status = async |node: usize, id: &str| {
        let asked = rig
            .http
            .get(rig.url_of(node, &format!("/ledgers/{id}/who")));
        let answer = asked
            .timeout(Duration::from_secs(8))
            .send()
            .await
            .expect("an answer");
        let retry = answer.headers().contains_key("retry-after");
        (answer.status().as_u16(), retry)
    };
    for node in 0..2 {
        assert_eq!(status(node, "known").await.0, 200);
    }
    rig.redis.kill().await;
    for node in 0..2 {
        assert_eq!(status(node, "known").await.0, 200);
        assert_eq!(status(node, "unknown").await, (503, true));
    }
    rig.redis.restart().await;
    rig.until("service returns by itself", async || {
        let asked = rig.http.get(rig.url("/ledgers/unknown/who"));
        let answer = asked.timeout(Duration::from_secs(5)).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    rig.check_activity();
}
