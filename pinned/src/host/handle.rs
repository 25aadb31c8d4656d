//! A typed way in, for code of the same process.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::core::Host;
use super::wind_down::WindDown;
use crate::api::call::Entry;
use crate::api::chain::chain_hold;
use crate::api::definition::PinnedApi;
use crate::api::instance::Instance;
use crate::api::refusal::Unavailable;
use crate::api::seam::{Begin, InstanceSeam, TurnAnswer, TurnKind, Work, WorkClass, boxed};
use crate::api::turn::{ReadTurn, Tracked, WriteTurn, name_chain, settle_turn};
use crate::domain::saturating_add;

/// One namespace of a worker, typed: calls into its instances without HTTP, and what governs them.
///
/// From [`PinnedWorker::hosted`](crate::PinnedWorker::hosted).
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api};
/// # #[derive(Default)]
/// # struct Counter { count: u64 }
/// #[pinned_api("/counters")]
/// impl Counter {
///     async fn increment(&mut self) -> u64 { self.count += 1; self.count }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let worker = PinnedWorker::builder().host::<Counter>("/counters").build()?;
/// let running = worker.run_lifespan().await?;
/// let counters = worker.hosted::<Counter>().expect("hosted above");
/// assert_eq!(counters.write("alice").await?.increment().await, 1);
/// running.shutdown().await?;
/// # Ok(())
/// # }
/// ```
pub struct PinnedHost<T> {
    host: Arc<Host>,
    of: PhantomData<fn() -> T>,
}

/// The work of a typed call: no request, so nothing is sampled.
const TYPED_WORK: Work = Work {
    class: WorkClass::Handler,
    started: None,
};

impl<T: PinnedApi> PinnedHost<T> {
    /// `None` when `host` hosts another type.
    pub(crate) fn new(host: &Arc<Host>) -> Option<Self> {
        ((host.blueprint.type_id)() == TypeId::of::<T>()).then(|| Self {
            host: Arc::clone(host),
            of: PhantomData,
        })
    }

    /// The namespace, with its slash.
    pub fn namespace(&self) -> &str {
        &self.host.namespace
    }

    /// How many instances there are, in any state between their construction and the end of their close.
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// Whether there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether new activations are refused because the host drains.
    pub fn is_draining(&self) -> bool {
        self.host.is_draining()
    }

    /// Draining, with no instance left.
    pub fn is_drained(&self) -> bool {
        self.host.is_drained()
    }

    /// Activations since the start.
    pub fn activations(&self) -> u64 {
        self.host.activation_count()
    }

    /// Closes since the start, discarded cold instances included.
    pub fn evictions(&self) -> u64 {
        self.host.eviction_count()
    }

    /// The live instance of `id`, activated if it must be. No authorizer is asked.
    ///
    /// The handle keeps nothing alive: an instance without work may be evicted, and its turns are then refused as
    /// closing. [`PinnedHost::read`] and [`PinnedHost::write`] go from the id to the turn in one step.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: a refusal of the host, or a failed setup.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an activation that was started goes on.
    pub async fn instance(&self, id: &str) -> Result<Instance<T>, Unavailable> {
        let seam = self.host.enter(id).await?;
        let _entry = Entry::adopt(Arc::clone(&seam), None);
        Arc::clone(&seam).activate().await?;
        Ok(Instance::new(seam))
    }

    /// A shared turn of `id`'s instance, activated if it must be. The turn counts as work until it is dropped.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: a refusal of the host or of the turn, or a failed setup.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves every queue.
    pub async fn read(&self, id: &str) -> Result<ReadTurn<T>, Unavailable> {
        Ok(ReadTurn::new(self.begin(id, TurnKind::Shared).await?)?)
    }

    /// The exclusive turn of `id`'s instance, activated if it must be. The turn counts as work until it is dropped.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: a refusal of the host or of the turn, or a failed setup.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves every queue.
    pub async fn write(&self, id: &str) -> Result<WriteTurn<T>, Unavailable> {
        Ok(WriteTurn::new(self.begin(id, TurnKind::Exclusive).await?)?)
    }

    /// Winds one instance down: it serves until `deadline` from now, closes once idle, and is cut off at the deadline.
    /// A zero deadline cuts it off now; `None` revokes what was asked before. An unknown id is no error (H10.3).
    pub fn wind_down(&self, id: &str, deadline: Option<Duration>) {
        let now = self.host.env.domain.monotonic();
        let asked = deadline.map(|after| WindDown {
            deadline: Some(saturating_add(now, after)),
        });
        self.host.wind_down(id, asked);
    }

    /// Ends one instance now (H11.9). An unknown id is no error.
    pub fn abort(&self, id: &str) {
        if let Some(record) = self.host.directory.get(id) {
            InstanceSeam::abort(record);
        }
    }

    /// Begins work on `id`'s instance. Only what cannot be had at once costs a future of its own.
    async fn begin(&self, id: &str, turn: TurnKind) -> Result<Tracked, Unavailable> {
        if let Some((seam, begun)) = self.host.begin_resident(id, turn) {
            match begun {
                Begin::Started(Some(TurnAnswer::Granted(turn))) => {
                    return Ok(Tracked::adopt(seam, Some(TYPED_WORK), Some(turn)));
                }
                Begin::Started(Some(answer)) => {
                    let waiting = settle_turn(seam, Some(TYPED_WORK), answer);
                    return Ok(boxed(waiting).await?);
                }
                Begin::Refused(refusal) => return Err(name_chain(refusal, &seam, turn).into()),
                // It has begun to close in this moment.
                Begin::Started(None) | Begin::NotResident => {}
            }
        }
        boxed(self.begin_step_by_step(id, turn)).await
    }

    async fn begin_step_by_step(&self, id: &str, turn: TurnKind) -> Result<Tracked, Unavailable> {
        let seam = self.host.enter(id).await?;
        let entry = Entry::adopt(Arc::clone(&seam), None);
        loop {
            match seam.begin(WorkClass::Handler, Some((turn, chain_hold(&seam)))) {
                Begin::Started(answer) => {
                    entry.begun();
                    return match answer {
                        None => Ok(Tracked::adopt(seam, Some(TYPED_WORK), None)),
                        Some(answer) => Ok(settle_turn(seam, Some(TYPED_WORK), answer).await?),
                    };
                }
                Begin::NotResident => Arc::clone(&seam).activate().await?,
                Begin::Refused(refusal) => return Err(name_chain(refusal, &seam, turn).into()),
            }
        }
    }
}

impl<T> Clone for PinnedHost<T> {
    fn clone(&self) -> Self {
        Self {
            host: Arc::clone(&self.host),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for PinnedHost<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)
    }
}
