//! Whether this node lives, and takes requests (P3.6).

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{NodeState, Operators};
use crate::sessions::{Registry, RegistryError};

/// How long the store may take to answer.
const PING_TIME: Duration = Duration::from_secs(2);

/// How long its last answer stands: anyone may ask, and the store must not be asked as often.
const PING_STANDS: Duration = Duration::from_millis(250);

/// The last time that the store was asked whether it answers.
#[derive(Debug, Default)]
pub(super) struct StoreProbe {
    last: Mutex<Option<(Instant, bool)>>,
}

impl StoreProbe {
    async fn answers(&self, registry: &Registry) -> bool {
        let now = registry.domain.monotonic();
        if let Some((asked, answered)) = *self.last.lock()
            && now.saturating_duration_since(asked) < PING_STANDS
        {
            return answered;
        }
        let ping = registry.domain.timeout(PING_TIME, registry.store.ping());
        let answered = matches!(ping.await, Ok(Ok(())));
        *self.last.lock() = Some((registry.domain.monotonic(), answered));
        answered
    }
}

impl Operators {
    /// Whether this node takes requests.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unavailable`], which says why not.
    pub async fn ready(&self) -> Result<(), RegistryError> {
        let why = match self.readiness.state() {
            NodeState::Serving => {
                if self.probe.answers(&self.registry).await {
                    return Ok(());
                }
                "the registry store does not answer"
            }
            NodeState::Starting => "starting",
            NodeState::Stopping => "stopping",
            NodeState::Displaced => "displaced",
        };
        Err(RegistryError::Unavailable(why.to_owned()))
    }
}
