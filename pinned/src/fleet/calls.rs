//! Calls to the registry: one, bounded in time; or a few, until one gets through.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;

use super::metrics::control_failed;
use super::transport::{ControlAnswer, ControlPlane};
use crate::domain::Domain;
use crate::error::{BoxError, ErrorChain};

/// How long one call may take (W2.3).
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The pauses between the attempts of a call that is repeated (W3.14).
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(400)];

/// Calls to the registry.
pub(super) struct Calls {
    pub(super) domain: Domain,
    plane: Arc<dyn ControlPlane>,
}

/// A call was repeated as often as it is, and never got through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control plane did not take it; it frees the placement when the lease lapses")]
pub(super) struct GivenUp;

impl Calls {
    pub(super) fn new(domain: Domain, plane: Arc<dyn ControlPlane>) -> Self {
        Self { domain, plane }
    }

    pub(super) async fn once(
        &self,
        path: &'static str,
        body: &impl Serialize,
    ) -> Result<ControlAnswer, BoxError> {
        let body = serde_json::to_vec(body)?;
        match self
            .domain
            .timeout(PATIENCE, self.plane.post(path, body))
            .await
        {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(format!("no answer within {PATIENCE:?}").into()),
        }
    }

    /// Success is status 200; everything else is tried again.
    pub(super) async fn with_retries(
        &self,
        operation: &'static str,
        path: &'static str,
        body: &impl Serialize,
        what: impl Fn() -> String,
    ) -> Result<(), GivenUp> {
        let mut pauses = PAUSES.iter();
        loop {
            let failure = match self.once(path, body).await {
                Ok(answer) if answer.status == StatusCode::OK => return Ok(()),
                Ok(answer) => describe(&answer),
                Err(error) => ErrorChain(&*error).to_string(),
            };
            let Some(pause) = pauses.next() else {
                control_failed(operation, "exhausted");
                tracing::warn!(
                    target: "pinned::fleet",
                    failure,
                    "{} was given up; the control plane frees placements when the lease lapses",
                    what()
                );
                return Err(GivenUp);
            };
            self.domain.sleep(*pause).await;
        }
    }
}

/// An answer in a log: its status, and the beginning of what it says.
pub(super) fn describe(answer: &ControlAnswer) -> String {
    const SHOWN: usize = 300;
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(SHOWN)]);
    format!("{} {text}", answer.status.as_u16())
}
