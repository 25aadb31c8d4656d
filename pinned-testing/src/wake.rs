//! Waking an instance without a request of its own.

use std::time::Duration;

use http::StatusCode;

use crate::client::TestClient;
use crate::response::TestResponse;

/// How long to leave an instance alone that is on its way.
const PAUSE: Duration = Duration::from_millis(10);

/// Why an instance did not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WakeError {
    /// Neither "resident", nor "on its way", nor "later".
    #[error("the wake of {path} was answered with {}", answer.status())]
    #[non_exhaustive]
    Refused {
        /// What was asked.
        path: String,
        /// The answer.
        answer: TestResponse,
    },
    /// It was not resident in time.
    #[error("{path} is not resident after {timeout:?}")]
    #[non_exhaustive]
    TimedOut {
        /// What was asked.
        path: String,
        /// The time that was given.
        timeout: Duration,
    },
}

/// Wakes the instance at `path`, `/<namespace>/<id>`, and waits until it is resident: 202 and 503 keep waiting (H17.5).
///
/// Only a worker with a state store can be asked to (H14), such as one with a
/// [`BarrierStore`](crate::BarrierStore).
///
/// # Errors
///
/// [`WakeError`], with any other answer.
///
/// # Cancel safety
///
/// Cancel safe: an activation that was started goes on.
///
/// ```
/// # use pinned::pinned_api;
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")] impl Room {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use pinned::PinnedWorker;
/// use pinned_testing::{BarrierStore, TestApp, wake_until_ok};
///
/// let builder = PinnedWorker::builder().host::<Room>("/rooms");
/// let app = TestApp::start(builder.store(BarrierStore::new())).await?;
/// wake_until_ok(&app.client(), "/rooms/blue", Duration::from_secs(5)).await?;
/// assert_eq!(app.host::<Room>().activations(), 1);
/// # app.shutdown().await?;
/// # Ok(())
/// # }
/// ```
pub async fn wake_until_ok(
    client: &TestClient,
    path: &str,
    timeout: Duration,
) -> Result<(), WakeError> {
    let domain = client.worker().domain();
    let wake = format!("{}/_wake", path.trim_end_matches('/'));
    let polls = async {
        loop {
            let answer = client.post(&wake).send().await;
            match answer.status() {
                StatusCode::OK => return Ok(()),
                StatusCode::ACCEPTED | StatusCode::SERVICE_UNAVAILABLE => domain.sleep(PAUSE).await,
                _ => {
                    let path = path.to_owned();
                    return Err(WakeError::Refused { path, answer });
                }
            }
        }
    };
    match domain.timeout(timeout, polls).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(WakeError::TimedOut {
            path: path.to_owned(),
            timeout,
        }),
    }
}
