//! `GET /registry/health`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Connections, Operators, RoundTrips};
use crate::store::StoreFuture;

/// How long the store may take to answer each question.
const STORE_TIME: Duration = Duration::from_secs(2);

/// How this node is (P3.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// How requests found their holders since the node started, by outcome (P11).
    pub resolutions: BTreeMap<String, u64>,
    /// The connections that it proxies.
    pub connections: Connections,
    /// Whether anything new is placed; `null` when the store does not answer.
    pub quarantine: Option<QuarantineHealth>,
    /// The registry store.
    pub store: StoreHealth,
    /// Which nodes hold the fleet's leases, by the names of these; `null` where nobody does.
    pub leases: BTreeMap<String, Option<LeaseHealth>>,
}

/// Whether anything new is placed (P4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineHealth {
    /// Nothing is.
    pub active: bool,
    /// Until when, in milliseconds since the Unix epoch.
    pub until: Option<u64>,
}

/// The registry store, as seen from this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreHealth {
    /// What it is.
    pub description: String,
    /// Whether it answers.
    pub answers: bool,
    /// How long it took to answer just now, in milliseconds.
    pub ping_ms: Option<f64>,
    /// How long its operations took since the node started, by their names.
    pub round_trips: BTreeMap<String, RoundTrips>,
}

/// A lease of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseHealth {
    /// The node that holds it.
    pub node: String,
    /// For how long yet, in milliseconds.
    pub expires_in_ms: u64,
}

impl Operators {
    /// How this node is (P3.3). It answers when the store does not.
    pub async fn health(&self) -> Health {
        let registry = &self.registry;
        let figures = self.figures.figures();
        let asked = registry.domain.monotonic();
        let answers = self.in_time(registry.store.ping()).await.is_some();
        let took = registry.domain.monotonic() - asked;
        let quarantine = match answers {
            true => self.in_time(registry.store.quarantine()).await,
            false => None,
        };
        let mut leases = BTreeMap::new();
        for name in &self.leases {
            let leader = match answers {
                true => self.in_time(registry.store.leader(name)).await.flatten(),
                false => None,
            };
            let lease = leader.map(|(node, left)| LeaseHealth {
                node,
                expires_in_ms: millis(left),
            });
            leases.insert((*name).to_owned(), lease);
        }
        Health {
            resolutions: figures.resolutions,
            connections: figures.connections,
            quarantine: quarantine.map(|left| QuarantineHealth {
                active: left.is_some(),
                until: left.map(|left| registry.now_ms().saturating_add(millis(left))),
            }),
            store: StoreHealth {
                description: registry.store.describe(),
                answers,
                ping_ms: answers.then_some(took.as_secs_f64() * 1e3),
                round_trips: figures.round_trips,
            },
            leases,
        }
    }

    async fn in_time<T>(&self, question: StoreFuture<'_, T>) -> Option<T> {
        let answer = self.registry.domain.timeout(STORE_TIME, question).await;
        answer.ok()?.ok()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
