//! The item in hand, as its handler sees it (T12), and keyed admissions (T13).

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::core::Core;
use super::definition::Tray;
use super::error::TrayError;
use super::field::{KeyedAdmission, KeyedCount, encode};
use super::handle::{AdmissionReturn, TrayHandle};
use super::key::Key;
use super::queue::PersistentQueue;
use super::reserved::{self, DispatchRecord, Outcome};
use crate::domain::until;
use crate::durability::Receipt;
use crate::error::BoxError;

/// One delivery of one item: which attempt it is, what earlier ones left behind, and what is to be done exactly once.
///
/// It is a [`TrayHandle`] of its own tray too.
pub struct Dispatch<W: Tray> {
    tray: TrayHandle<W>,
    in_hand: Arc<InHand>,
    attempts: u64,
}

/// What the tray knows of the delivery under way.
#[derive(Default)]
pub(crate) struct InHand {
    cancelled: AtomicBool,
    /// The handler watches for it, and is left to end by itself.
    watched: AtomicBool,
    settled: AtomicBool,
    changed: Notify,
}

/// The item was given up by [`TrayHandle::cancel_dispatch`]; what a handler that watches for it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the dispatch was cancelled")]
pub struct DispatchCancelled;

impl InHand {
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(super) fn is_consumed(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(super) fn settle(&self) {
        self.settled.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn check_unsettled(&self) -> Result<(), TrayError> {
        match self.settled.load(Ordering::Acquire) {
            true => Err(TrayError::Keyed("this delivery is over")),
            false => Ok(()),
        }
    }

    async fn wait_settled(&self) {
        until(&self.changed, || self.settled.load(Ordering::Acquire)).await;
    }

    async fn wait_cancelled(&self) {
        until(&self.changed, || self.is_consumed()).await;
    }

    /// Resolves once the handler is to be dropped where it waits.
    pub(super) async fn dropped(&self) {
        until(&self.changed, || {
            self.is_consumed() && !self.watched.load(Ordering::Acquire)
        })
        .await;
    }
}

impl<W: Tray> Dispatch<W> {
    pub(super) fn new(core: Arc<Core<W>>, in_hand: Arc<InHand>, attempts: u64) -> Self {
        Self {
            tray: TrayHandle::new(core),
            in_hand,
            attempts,
        }
    }

    /// The tray.
    pub fn tray(&self) -> &TrayHandle<W> {
        &self.tray
    }

    /// Which delivery of this item this is: 1 the first time. A crash before the count is durable repeats a number
    /// (T11.2).
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// What earlier deliveries of this item left with [`Dispatch::set_state`].
    ///
    /// # Errors
    ///
    /// [`TrayError::Malformed`] when that is no `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, TrayError> {
        let state = self.core().look(|state| reserved::state(&state.image))?;
        state
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| TrayError::Malformed {
                tray: self.tray.key().clone(),
                entry: "~state".to_owned(),
                reason: error.to_string(),
            })
    }

    /// Leaves something for later deliveries of this item; it goes with the item's acknowledgement (T12.2).
    ///
    /// # Errors
    ///
    /// The delivery is over, or `state` has no JSON form.
    pub fn set_state<S: Serialize + ?Sized>(&self, state: &S) -> Result<(), TrayError> {
        let value = self.value_of("~state", state)?;
        self.core().segment(|state, _| {
            self.check_unsettled()?;
            reserved::set_state(&mut state.image, Some(&value));
            Ok(())
        })
    }

    /// Runs `effect` once everything enlisted before it is durable (T12.3).
    ///
    /// # Errors
    ///
    /// The delivery is over, or the instance can confirm nothing any more.
    pub fn enlist<F, E>(&self, effect: F) -> Result<Receipt, TrayError>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.check_unsettled()?;
        Ok(self.core().frontier.enlist(effect)?)
    }

    /// Resolves when the item is given up. A handler that has called this is not dropped: it ends by itself, with
    /// [`DispatchCancelled`] for instance (T12.5).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.in_hand.watched.store(true, Ordering::Release);
        let in_hand = Arc::clone(&self.in_hand);
        async move { in_hand.wait_cancelled().await }
    }

    /// Whether the item was given up.
    pub fn is_cancelled(&self) -> bool {
        self.in_hand.is_consumed()
    }

    /// Takes entries of a queue for this item one by one, and waits for more (T6.2). What was taken is gone with the
    /// item's acknowledgement.
    ///
    /// ```
    /// # use pinned::{Dispatch, PersistentQueue, Tray};
    /// # #[derive(Tray)] struct Talk { #[tray(items)] turns: PersistentQueue<u64>, said: PersistentQueue<String> }
    /// # async fn demo(dispatch: Dispatch<Talk>) -> Result<(), pinned::TrayError> {
    /// use futures_util::TryStreamExt;
    ///
    /// let mut said = dispatch.take(|talk| &mut talk.said);
    /// while let Some(words) = said.try_next().await? {
    ///     println!("{words}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The stream ends with the first error: the delivery is over, the tray is closed or deleted, or the instance can
    /// confirm nothing any more.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an entry is taken in the very poll that gives it, so a wait that is dropped, by `select!` for instance,
    /// has taken none.
    pub fn take<T, Q>(
        &self,
        queue: Q,
    ) -> impl Stream<Item = Result<T, TrayError>> + Send + Unpin + use<W, T, Q>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        Q: Fn(&mut W) -> &mut PersistentQueue<T> + Send + Sync + 'static,
    {
        let (core, in_hand) = (Arc::clone(self.core()), Arc::clone(&self.in_hand));
        unfold(Some((core, in_hand, queue)), |state| async move {
            let (core, in_hand, queue) = state?;
            match take_one(&core, &in_hand, &queue).await {
                Ok(item) => Some((Ok(item), Some((core, in_hand, queue)))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    /// Admits work into another tray of this instance, or this one, exactly once per `key`, however often this item is
    /// delivered (T13.4).
    ///
    /// Delivered again, `admission` does not run if the first one is known to have landed, and what it appends is
    /// dropped as far as it has landed. So it must do the same each time, and append objects only. Choose keys that
    /// include what the item is: a key that another item holds absorbs this admission.
    ///
    /// # Errors
    ///
    /// The delivery is over, the target is closed or deleted or of another instance, the key was used for another target,
    /// or `admission` failed or broke a rule: nothing of it stays then.
    pub fn admit_once<V: Tray, R: AdmissionReturn>(
        &self,
        key: impl Serialize,
        target: &TrayHandle<V>,
        admission: impl FnOnce(&mut V) -> R,
    ) -> Result<Outcome, TrayError> {
        if !target.core().frontier.is_same_log(&self.core().frontier) {
            return Err(TrayError::Keyed(
                "the target is no tray of this live instance, and one write cannot span two",
            ));
        }
        let key = Key::from(self.value_of("~dispatch", &key)?);
        // One segment for both trays. The target's row comes first: should a crash come between them, it is the tagged
        // entries that tell (T13.11).
        self.core().frontier.segment(|_| {
            self.check_unsettled()?;
            if let Some(outcome) = self.recorded(&key, target.key())? {
                return Ok(outcome);
            }
            let outcome = target.core().admit_keyed(&key, admission)?;
            self.core().segment(|state, _| {
                let mut records = reserved::dispatches(&state.image);
                records.push(DispatchRecord::new(key, target.key(), outcome));
                reserved::set_dispatches(&mut state.image, &records);
                Ok(outcome)
            })
        })?
    }

    /// What `value` is as JSON that can be kept.
    fn value_of<S: Serialize + ?Sized>(
        &self,
        entry: &str,
        value: &S,
    ) -> Result<serde_json::Value, TrayError> {
        let kept = || {
            let value = serde_json::to_value(value)?;
            encode(&value)?;
            Ok(value)
        };
        kept().map_err(|source| TrayError::Encode {
            tray: self.tray.key().clone(),
            entry: entry.to_owned(),
            source,
        })
    }

    fn recorded(
        &self,
        key: &Key,
        target: &crate::durability::TrayKey,
    ) -> Result<Option<Outcome>, TrayError> {
        let records = self
            .core()
            .look(|state| reserved::dispatches(&state.image))?;
        match records.iter().find(|record| record.key == *key) {
            None => Ok(None),
            Some(record) if record.is_for(target) => Ok(Some(record.outcome)),
            Some(_) => Err(TrayError::Keyed(
                "this item has used the key for another tray already",
            )),
        }
    }

    fn check_unsettled(&self) -> Result<(), TrayError> {
        self.in_hand.check_unsettled()
    }

    fn core(&self) -> &Arc<Core<W>> {
        self.tray.core()
    }
}

async fn take_one<W, T>(
    core: &Arc<Core<W>>,
    in_hand: &InHand,
    queue: &(impl Fn(&mut W) -> &mut PersistentQueue<T> + Send + Sync),
) -> Result<T, TrayError>
where
    W: Tray,
    T: Serialize + DeserializeOwned + Send + 'static,
{
    let arrivals = core.look(|state| queue(&mut state.value).arrivals())?;
    loop {
        let arrived = arrivals.notified();
        let mut arrived = std::pin::pin!(arrived);
        // Before the look: what comes after it wakes this.
        arrived.as_mut().enable();
        let taken = core.segment(|state, _| {
            // Later it would be gone with the acknowledgement of another item.
            in_hand.check_unsettled()?;
            if state.sealed {
                return Err(core.retired(state));
            }
            // One that is not there is none.
            Ok(queue(&mut state.value)
                .take_now(1)
                .unwrap_or_default()
                .pop())
        })?;
        if let Some(item) = taken {
            return Ok(item);
        }
        tokio::select! {
            () = arrived => {}
            () = in_hand.wait_settled() => {}
        }
    }
}

impl<V: Tray> Core<V> {
    /// Runs an admission under a key (T13.7 to T13.9).
    fn admit_keyed<R: AdmissionReturn>(
        self: &Arc<Self>,
        key: &Key,
        admission: impl FnOnce(&mut V) -> R,
    ) -> Result<Outcome, TrayError> {
        self.segment(|state, _| {
            self.check_open(state)?;
            let mut ignored = reserved::ignored(&state.image);
            let known = ignored.contains(key);
            let keyed = KeyedAdmission {
                key: key.clone(),
                ignored: known,
            };
            state
                .value
                .fields(&mut |_, field| field.begin_keyed(&keyed));
            state.kick();
            // A failure takes everything back, the tagging too.
            admission(&mut state.value)
                .into_admission()
                .map_err(TrayError::Refused)?;
            let mut count = KeyedCount::default();
            state
                .value
                .fields(&mut |_, field| count.add(field.end_keyed()));
            if let Some(rule) = count.broken {
                return Err(TrayError::Keyed(rule));
            }
            if !known {
                ignored.push(key.clone());
                reserved::set_ignored(&mut state.image, &ignored);
            }
            let absorbed = known || (count.attempted > 0 && count.landed == 0);
            Ok(match absorbed {
                true => Outcome::Absorbed,
                false => Outcome::Admitted,
            })
        })
    }

    /// Lets go of a key that its source holds no more (T13.10).
    pub(super) fn forget_key(self: &Arc<Self>, key: &Key) -> Result<(), TrayError> {
        self.segment(|state, _| {
            let mut ignored = reserved::ignored(&state.image);
            ignored.retain(|known| known != key);
            reserved::set_ignored(&mut state.image, &ignored);
            Ok(())
        })
    }

    /// Phase two of the item's keyed admissions: their targets let go of the keys (T13.10).
    pub(super) async fn clean_up_dispatches(self: &Arc<Self>) -> Result<(), TrayError> {
        let records = self.look(|state| reserved::dispatches(&state.image))?;
        for record in records.into_iter().filter(|record| !record.cleaned) {
            let target = record.target();
            if target == self.key {
                self.forget_key(&record.key)?;
            } else if let Some(trays) = self.trays.upgrade() {
                trays.forget_key(&target, &record.key).await?;
            }
            self.segment(|state, _| {
                let mut records = reserved::dispatches(&state.image);
                for known in &mut records {
                    known.cleaned |= known.key == record.key;
                }
                reserved::set_dispatches(&mut state.image, &records);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl<W: Tray> Deref for Dispatch<W> {
    type Target = TrayHandle<W>;

    fn deref(&self) -> &TrayHandle<W> {
        &self.tray
    }
}

impl<W: Tray> fmt::Debug for Dispatch<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch")
            .field("tray", self.tray.key())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
