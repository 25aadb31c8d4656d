//! A control plane that does what the test says.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned::{BoxError, Placements};
use tokio::sync::Semaphore;

use crate::valve::Valve;

/// Stands in for a control plane: takes releases, and makes the worker one whose requests need an attestation.
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room {
/// #     #[route::get("/")] async fn name(&self) -> &'static str { "a room" }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// use pinned_testing::{Release, ScriptedPlacements, TestApp};
///
/// let placements = ScriptedPlacements::new();
/// let builder = PinnedWorker::builder().host::<Room>("/rooms");
/// let app = TestApp::start(builder.placements(placements.clone())).await?;
/// app.client().get("/rooms/blue").header("pinboard-epoch", "3").send().await;
/// app.shutdown().await?;
/// assert_eq!(placements.released(), [Release::new("/rooms", "blue", Some(3))]);
/// # Ok(())
/// # }
/// ```
pub struct ScriptedPlacements {
    shared: Arc<Shared>,
}

struct Shared {
    valve: Valve,
    calls: Semaphore,
    script: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    session: Option<String>,
    failures: usize,
    requested: Vec<Release>,
    told: usize,
    released: Vec<Release>,
}

/// A placement that was handed back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Release {
    /// The namespace, with its slash.
    pub namespace: String,
    /// The id.
    pub id: String,
    /// The placement epoch, where the host knows one.
    pub epoch: Option<u64>,
}

impl Release {
    /// The release of `id` under `namespace` at `epoch`.
    #[must_use]
    pub fn new(namespace: impl Into<String>, id: impl Into<String>, epoch: Option<u64>) -> Self {
        Self {
            namespace: namespace.into(),
            id: id.into(),
            epoch,
        }
    }
}

impl ScriptedPlacements {
    /// A control plane with the session `session-1`, which acknowledges every release at once.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared {
                valve: Valve::new(),
                calls: Semaphore::new(0),
                script: Mutex::new(Script {
                    session: Some("session-1".to_owned()),
                    ..Script::default()
                }),
            }),
        })
    }

    /// Sets the session that attestations are for; `None` is a worker before its first registration.
    pub fn set_session(&self, session: Option<&str>) {
        self.shared.script.lock().session = session.map(str::to_owned);
    }

    /// Every release that was asked for, whether or not it is acknowledged, in order.
    #[must_use]
    pub fn requested(&self) -> Vec<Release> {
        self.shared.script.lock().requested.clone()
    }

    /// Every release that is acknowledged, in the order of the acknowledgements.
    #[must_use]
    pub fn released(&self) -> Vec<Release> {
        self.shared.script.lock().released.clone()
    }

    /// Waits for a release to be asked for. Each call tells of the next one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no release is passed over.
    pub async fn next_release(&self) -> Release {
        if let Ok(call) = self.shared.calls.acquire().await {
            call.forget();
        }
        let mut script = self.shared.script.lock();
        let next = script.told;
        script.told += 1;
        // One call is one entry.
        script.requested[next].clone()
    }

    /// Parks releases from now on, those that are parked already included, until [`ScriptedPlacements::release`].
    pub fn hold(&self) {
        self.shared.valve.hold();
    }

    /// Lets go of the releases that are parked, and parks no more.
    pub fn release(&self) {
        self.shared.valve.release();
    }

    /// Waits until a release is parked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn parked(&self) {
        self.shared.valve.parked().await;
    }

    /// Gives up the next release that is asked for, once it is not parked; called twice, the next two.
    pub fn fail_next(&self) {
        self.shared.script.lock().failures += 1;
    }
}

impl Placements for ScriptedPlacements {
    fn release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let release = Release::new(namespace, id, epoch);
        let shared = Arc::clone(&self.shared);
        let fails = {
            let mut script = shared.script.lock();
            script.requested.push(release.clone());
            let fails = script.failures > 0;
            script.failures -= usize::from(fails);
            fails
        };
        shared.calls.add_permits(1);
        Box::pin(async move {
            shared.valve.pass().await;
            if fails {
                return Err("the script gives this release up".into());
            }
            shared.script.lock().released.push(release);
            Ok(())
        })
    }

    fn session_audience(&self) -> Option<Arc<str>> {
        self.shared.script.lock().session.as_deref().map(Arc::from)
    }
}

impl fmt::Debug for ScriptedPlacements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.shared.script.lock();
        f.debug_struct("ScriptedPlacements")
            .field("requested", &script.requested)
            .field("released", &script.released)
            .finish_non_exhaustive()
    }
}
