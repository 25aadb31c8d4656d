//! `GET /_pinned/stats` (W10.1, W10.3).

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use pinned_wire::attestation::same_secret;
use pinned_wire::headers::{ATTESTATION, PROXY_SECRET};
use serde_json::{Map, Value, json};

use super::PinnedWorker;
use crate::api::refusal::detail_response;

pub(super) async fn stats(State(worker): State<PinnedWorker>, headers: HeaderMap) -> Response {
    if worker.may_ask(&headers) {
        Json(worker.stats()).into_response()
    } else {
        detail_response(StatusCode::FORBIDDEN, "invalid proxy secret")
    }
}

impl PinnedWorker {
    /// What `GET /_pinned/stats` answers: every instance in any state, and counts since the start.
    ///
    /// An instance whose exclusive turn is held at the moment has a row without what its `#[stats]` hook adds.
    pub fn stats(&self) -> Value {
        let mut namespaces = Map::new();
        let mut instances = Vec::new();
        for host in self.each_host() {
            namespaces.insert(
                host.namespace.to_string(),
                json!({ "activations": host.activation_count(), "evictions": host.eviction_count() }),
            );
            instances.extend(host.rows());
        }
        let env = &self.core.env;
        json!({
            "draining": self.is_draining(),
            "leaseFlaps": env.lease.flaps(),
            "reregistrations": self.core.fleet.reregistrations(),
            "namespaces": namespaces,
            "instances": instances,
            "process": self.core.process.stats(env.domain.monotonic()),
        })
    }

    /// The proxy secret, or an attestation for this worker.
    pub(super) fn may_ask(&self, headers: &HeaderMap) -> bool {
        let env = &self.core.env;
        if headers
            .get(PROXY_SECRET)
            .is_some_and(|secret| same_secret(&env.secret, secret.as_bytes()))
        {
            return true;
        }
        let Some(token) = headers
            .get(ATTESTATION)
            .and_then(|token| token.to_str().ok())
        else {
            return false;
        };
        let session = env
            .placements
            .as_ref()
            .and_then(|placements| placements.session_audience());
        let audiences: Vec<&str> = session
            .as_deref()
            .into_iter()
            .chain(self.each_host().map(|host| host.audience.as_str()))
            .collect();
        env.verify(&audiences, token).is_some()
    }
}
