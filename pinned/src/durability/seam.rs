//! The durable side of an instance, as the host drives it.
//!
//! A store opens one [`EffectLog`] per live instance. The host moves its epoch, waits for it before a placement is
//! handed back, and disposes of it; what the log holds is not the host's affair.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;

use super::instance::{LogOwner, StoreLog};
use crate::error::BoxError;

/// Opens the log of an instance: what a state store offers to a host.
pub trait Durability: Send + Sync + 'static {
    /// The log of `id` under `namespace`, whose writes carry `epoch`.
    fn open(&self, namespace: &str, id: &str, epoch: u64) -> Arc<dyn EffectLog>;
}

/// The ordered log of one instance's durable effects.
pub trait EffectLog: Send + Sync + 'static {
    /// Whose log it is; told once, before anything else.
    #[doc(hidden)]
    fn attach(&self, owner: LogOwner) {
        drop(owner);
    }

    /// The log itself, for the instance's own code; `None` for a stand-in that keeps nothing.
    #[doc(hidden)]
    fn stored(&self) -> Option<&StoreLog> {
        None
    }

    /// Later writes carry `epoch` (H3.11). It never moves down.
    fn advance_epoch(&self, epoch: u64);

    /// Resolves once everything enlisted before the call is durable.
    ///
    /// # Errors
    ///
    /// The log has failed and can confirm nothing any more.
    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>>;

    /// The instance is gone: refuse what comes later and let go of what is held.
    fn dispose(&self);
}

/// The worker has no state store, so there is neither a frontier nor a placement epoch to read (H12.8, H15.1).
///
/// As a response it is 500, with a line in the log: it is a fault of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this worker has no state store; it opens one for durable fields, durable routes and trays, and takes the one that \
     `WorkerBuilder::store` gives it"
)]
pub struct NoStateStore;

impl IntoResponse for NoStateStore {
    fn into_response(self) -> Response {
        tracing::error!(target: "pinned::durability", error = %self, "a request needed a state store");
        let body = axum::Json(serde_json::json!({ "detail": "Internal Server Error" }));
        (http::StatusCode::INTERNAL_SERVER_ERROR, body).into_response()
    }
}
