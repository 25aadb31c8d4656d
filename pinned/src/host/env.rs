//! What all hosts of one worker share.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::Request;
use pinned_wire::attestation::TokenKey;

use super::tokens::RecentTokens;
use crate::api::chain::OpenCalls;
use crate::api::cluster::ClusterError;
use crate::api::seam::Seam;
use crate::api::state::SharedState;
use crate::domain::Domain;
use crate::durability::{Durability, StateStore};
use crate::error::BoxError;
use crate::lease::Lease;

/// The part of a control plane that hosts talk to: where placements are handed back, and who may call.
pub trait Placements: Send + Sync + 'static {
    /// Hands the placement of `id` back. Resolves once that is acknowledged or given up.
    ///
    /// # Errors
    ///
    /// It was given up; the control plane frees the placement when the lease lapses.
    fn release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>>;

    /// The audience that attestations of the current session carry (W8.6); `None` before the first registration.
    fn session_audience(&self) -> Option<Arc<str>>;
}

/// Carries calls of instances to their targets.
pub(crate) trait CallTransport: Send + Sync + 'static {
    fn call(
        &self,
        caller: Seam,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response, ClusterError>>;
}

/// What all hosts of one worker share.
pub(crate) struct WorkerEnv {
    pub(crate) domain: Domain,
    pub(crate) lease: Lease,
    pub(crate) shared: SharedState,
    /// The worker's secret, hex as it is.
    pub(crate) secret: String,
    /// The same as the key of attestations.
    pub(crate) key: TokenKey,
    pub(crate) recent: RecentTokens,
    pub(crate) placements: Option<Arc<dyn Placements>>,
    pub(crate) durability: Option<Arc<dyn Durability>>,
    /// What is behind it, to be opened at the start.
    pub(crate) store: Option<Arc<dyn StateStore>>,
    pub(crate) transport: OnceLock<Arc<dyn CallTransport>>,
    /// Those of its calls that other workers work on.
    pub(crate) calls: Arc<OpenCalls>,
}

impl WorkerEnv {
    /// The claims of a valid attestation for one of `audiences` (W8.4).
    pub(crate) fn verify(
        &self,
        audiences: &[&str],
        token: &str,
    ) -> Option<pinned_wire::attestation::Claims> {
        self.recent
            .verify(&self.key, audiences, self.domain.now(), token)
    }

    /// Whether a control plane places the ids of this worker.
    pub(crate) fn is_placed(&self) -> bool {
        self.placements.is_some()
    }
}
