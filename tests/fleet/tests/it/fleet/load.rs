//! Clients that go on whatever happens, and remember what was confirmed to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::rig::Rig;

/// What was confirmed, per id.
pub(super) type Confirmed = BTreeMap<String, BTreeSet<String>>;

/// Clients, each with ids of its own.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Outcome>>,
}

/// What came of a load.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) confirmed: Confirmed,
    pub(super) sent: u64,
    /// The answers that were not a success, with how often each came.
    pub(super) errors: BTreeMap<String, u64>,
}

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Admit durable items.
    Enqueue,
    /// Admit durable items, touch instances, and start over at once after an error: no error is expected.
    Mixed,
}

impl Load {
    /// `clients` clients with `ids` ids each, whose names begin with `name`.
    pub(super) fn start(rig: &Rig, name: &str, kind: Kind, clients: usize, ids: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let urls: Vec<String> = rig.nodes.iter().map(super::rig::Member::url).collect();
        let clients = (0..clients)
            .map(|client| {
                let ids = (0..ids).map(|id| format!("{name}-{client}-{id}")).collect();
                let client = Client {
                    http: rig.http.clone(),
                    urls: urls.clone(),
                    ids,
                    kind,
                    stop: Arc::clone(&stop),
                };
                tokio::spawn(client.run())
            })
            .collect();
        Self { stop, clients }
    }

    /// Ends it, and gives what came of all clients together.
    pub(super) async fn end(self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Outcome::default();
        for client in self.clients {
            let outcome = client.await.expect("a client that does not panic");
            all.sent += outcome.sent;
            all.confirmed.extend(outcome.confirmed);
            for (error, count) in outcome.errors {
                *all.errors.entry(error).or_default() += count;
            }
        }
        all
    }
}

impl Outcome {
    pub(super) fn items(&self) -> usize {
        self.confirmed.values().map(BTreeSet::len).sum()
    }
}

struct Client {
    http: reqwest::Client,
    urls: Vec<String>,
    ids: Vec<String>,
    kind: Kind,
    stop: Arc<AtomicBool>,
}

impl Client {
    async fn run(self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut round = 0_usize;
        while !self.stop.load(Ordering::Relaxed) {
            let id = &self.ids[round % self.ids.len()];
            let url = &self.urls[round / self.ids.len() % self.urls.len()];
            round += 1;
            let item = round.to_string();
            let enqueue = self.kind == Kind::Enqueue || round.is_multiple_of(3);
            let request = if enqueue {
                self.http
                    .post(format!("{url}/ledgers/{id}/enqueue"))
                    .header("content-type", "application/json")
                    .body(json!({ "id": item }).to_string())
            } else {
                self.http.post(format!("{url}/ledgers/{id}/touch"))
            };
            outcome.sent += 1;
            let answer = request.timeout(Duration::from_secs(10)).send().await;
            match answer {
                Ok(answer) if answer.status().is_success() => {
                    if enqueue {
                        outcome
                            .confirmed
                            .entry(id.clone())
                            .or_default()
                            .insert(item);
                    }
                }
                Ok(answer) => {
                    let status = answer.status();
                    let text = answer.text().await.unwrap_or_default();
                    *outcome
                        .errors
                        .entry(format!("{status} {text}"))
                        .or_default() += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => {
                    *outcome.errors.entry(error.to_string()).or_default() += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        outcome
    }
}

/// Waits until everything that was confirmed has been executed.
pub(super) async fn all_executed(rig: &Rig, node: usize, confirmed: &Confirmed) {
    for (id, items) in confirmed {
        rig.until(
            &format!("{id} executes all of its {} items", items.len()),
            async || {
                let executed = rig.executed(node, id).await?;
                let executed = executed.as_object()?;
                items
                    .iter()
                    .all(|item| executed.get(item).is_some_and(Value::is_u64))
                    .then_some(())
            },
        )
        .await;
    }
}
