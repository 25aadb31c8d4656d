//! The handle of a live tray.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::core::Core;
use super::definition::Tray;
use super::error::TrayError;
use super::field::encode;
use super::reserved;
use crate::durability::{Receipt, TrayKey};
use crate::error::BoxError;

/// A live tray of an instance: where work is admitted, and its fields are read and changed.
///
/// Every call is one segment: what it changes reaches the store together, and nobody else changes the tray in between.
/// The closures run under the instance's lock: keep them short. They cannot wait, and within one its own tray is
/// reached through the `&mut` it is given. Other trays of the instance join the segment; those of another instance
/// refuse, because no order would keep two instances from waiting for each other.
pub struct TrayHandle<W: Tray> {
    core: Arc<Core<W>>,
}

/// What an admission may return: nothing, or a `Result<(), E>` whose error takes all of it back.
#[diagnostic::on_unimplemented(
    message = "an admission returns nothing or `Result<(), E>`, not `{Self}`",
    label = "unsupported return type"
)]
pub trait AdmissionReturn {
    #[doc(hidden)]
    fn into_admission(self) -> Result<(), BoxError>;
}

impl AdmissionReturn for () {
    fn into_admission(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> AdmissionReturn for Result<(), E> {
    fn into_admission(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

impl<W: Tray> TrayHandle<W> {
    pub(crate) fn new(core: Arc<Core<W>>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core<W>> {
        &self.core
    }

    /// The name and the id of this tray.
    pub fn key(&self) -> &TrayKey {
        &self.core.key
    }

    /// The id within its map; `"~"` for a single tray.
    pub fn id(&self) -> &str {
        &self.core.key.tray_id
    }

    /// Whether its row was there when it opened, at the version of today (T9.4).
    pub fn is_restored(&self) -> bool {
        self.core.restored
    }

    /// Admits work: runs `admission`, marks the tray as having work, and starts the handler unless it is at it (T13).
    ///
    /// ```
    /// # use pinned::{PersistentQueue, Tray, TrayError, TrayHandle};
    /// # #[derive(Tray)] struct Mail { outgoing: PersistentQueue<String> }
    /// # async fn demo(mail: TrayHandle<Mail>) -> Result<(), Box<dyn std::error::Error>> {
    /// let admitted = mail.admit(|mail| mail.outgoing.push("hello".to_owned()))?;
    /// // From here on the letter survives any crash.
    /// admitted.await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The tray is closed or deleted, `admission` failed, or the instance can confirm nothing any more. Nothing of the
    /// admission stays then.
    pub fn admit<R: AdmissionReturn>(
        &self,
        admission: impl FnOnce(&mut W) -> R,
    ) -> Result<Receipt, TrayError> {
        self.core.receipted(|state, _| {
            self.core.check_open(state)?;
            state.kick();
            admission(&mut state.value)
                .into_admission()
                .map_err(TrayError::Refused)
        })
    }

    /// Marks the tray as having work, and starts the handler unless it is at it (T13.3).
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::admit`].
    pub fn kick(&self) -> Result<Receipt, TrayError> {
        self.admit(|_| ())
    }

    /// Changes fields, without admitting work.
    ///
    /// # Errors
    ///
    /// The tray is closed or deleted, or the instance can confirm nothing any more; nothing of the change stays then.
    /// A change that panics is taken back too.
    pub fn update<R>(&self, change: impl FnOnce(&mut W) -> R) -> Result<R, TrayError> {
        self.core.segment(|state, _| Ok(change(&mut state.value)))
    }

    /// Reads fields.
    ///
    /// # Errors
    ///
    /// [`TrayError::InSegment`] within a segment of this very tray.
    pub fn read<R>(&self, read: impl FnOnce(&W) -> R) -> Result<R, TrayError> {
        self.core.look(|state| read(&state.value))
    }

    /// An entry of the row that is no field (T3.5); `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`TrayError::Name`], and [`TrayError::Malformed`] when the entry is no `V`.
    pub fn entry<V: DeserializeOwned>(&self, name: &str) -> Result<Option<V>, TrayError> {
        self.core.look(|state| {
            self.check_name(&mut state.value, name)?;
            let Some(text) = state.image.get(name) else {
                return Ok(None);
            };
            serde_json::from_str(text)
                .map(Some)
                .map_err(|error| TrayError::Malformed {
                    tray: self.key().clone(),
                    entry: name.to_owned(),
                    reason: error.to_string(),
                })
        })?
    }

    /// Sets an entry of the row that is no field.
    ///
    /// # Errors
    ///
    /// [`TrayError::Name`], [`TrayError::Encode`], and those of [`TrayHandle::update`].
    pub fn set_entry<V: Serialize + ?Sized>(&self, name: &str, value: &V) -> Result<(), TrayError> {
        let text = encode(value).map_err(|source| TrayError::Encode {
            tray: self.key().clone(),
            entry: name.to_owned(),
            source,
        })?;
        self.put_entry(name, Some(text))
    }

    /// Removes an entry of the row that is no field; an absent one stays absent.
    ///
    /// # Errors
    ///
    /// [`TrayError::Name`], and those of [`TrayHandle::update`].
    pub fn remove_entry(&self, name: &str) -> Result<(), TrayError> {
        self.put_entry(name, None)
    }

    fn put_entry(
        &self,
        name: &str,
        text: Option<super::entries::EntryText>,
    ) -> Result<(), TrayError> {
        self.core.segment(|state, _| {
            self.check_name(&mut state.value, name)?;
            state.image.set(name, text);
            Ok(())
        })
    }

    fn check_name(&self, value: &mut W, name: &str) -> Result<(), TrayError> {
        let mut refused = name.is_empty() || name.starts_with('~');
        value.fields(&mut |field, _| refused |= field == name);
        match refused {
            true => Err(TrayError::Name(name.to_owned())),
            false => Ok(()),
        }
    }

    /// Whether the row is marked: there is work, or there was a moment ago (D1.3).
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::read`].
    pub fn is_marked(&self) -> Result<bool, TrayError> {
        self.core.look(|state| state.image.marked())
    }

    /// Whether the item in hand has used up its deliveries (T11.4).
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::read`].
    pub fn is_parked(&self) -> Result<bool, TrayError> {
        self.core.look(|state| reserved::is_parked(&state.image))
    }

    /// How often the item in hand was delivered so far (T11.2).
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::read`].
    pub fn attempts(&self) -> Result<u64, TrayError> {
        self.core.look(|state| reserved::attempts(&state.image))
    }

    /// Starts a parked tray again: the item comes again as attempt 1 (T11.5).
    ///
    /// # Errors
    ///
    /// [`TrayError::NotParked`], and those of [`TrayHandle::admit`].
    pub fn unpark(&self) -> Result<Receipt, TrayError> {
        self.core.receipted(|state, _| {
            self.core.check_open(state)?;
            if !reserved::is_parked(&state.image) {
                return Err(TrayError::NotParked(self.key().clone()));
            }
            reserved::set_parked(&mut state.image, false);
            reserved::set_attempts(&mut state.image, 0);
            state.kick();
            Ok(())
        })
    }

    /// Gives up the item in hand: its handler is dropped where it waits, or, if it watches
    /// [`Dispatch::cancelled`](crate::Dispatch::cancelled), told so; ended that way, the item counts as handled (T12.5).
    /// Without an item in hand, nothing happens.
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::read`].
    pub fn cancel_dispatch(&self) -> Result<(), TrayError> {
        if let Some(in_hand) = self.core.look(|state| state.in_hand.clone())? {
            in_hand.cancel();
        }
        Ok(())
    }

    /// Closes a tray of a map: its row stays, and getting it again opens it anew (T14).
    ///
    /// Decided at once; the future resolves when the live tray is gone, and need not be awaited. A handler at work is cut
    /// off, and its item comes again. Do not await it in the handler of this tray.
    ///
    /// # Errors
    ///
    /// [`TrayError::AlwaysOpen`], and [`TrayError::Deleted`] when it is being deleted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the wait alone.
    pub fn close(&self) -> Result<impl Future<Output = ()> + Send + use<W>, TrayError> {
        if self.core.form.is_always_open() {
            return Err(TrayError::AlwaysOpen(self.key().clone()));
        }
        if self.core.begin_close()?
            && let Some(owner) = self.core.owner.upgrade()
        {
            owner.spawn_tracked(Box::pin(Arc::clone(&self.core).close_after_pump()));
        }
        Ok(Arc::clone(&self.core).ended())
    }

    /// Durably admits the deletion of this tray, ahead of every item that is not in hand yet (T15).
    ///
    /// The receipt says that the command is durable, which a crash cannot lose. To wait until the row is gone, await
    /// [`TrayHandle::deleted`].
    ///
    /// # Errors
    ///
    /// [`TrayError::Closed`] when it is closed already. Repeating it is harmless.
    pub fn delete(&self) -> Result<Receipt, TrayError> {
        self.core.condemn()
    }

    /// Resolves when this live tray has ended, closed or deleted.
    ///
    /// It ends with its instance too. Whether the store has confirmed that the row is gone,
    /// [`Frontier::wait`](crate::durability::Frontier::wait) says afterwards; if not, the next activation deletes it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn deleted(&self) {
        Arc::clone(&self.core).ended().await;
    }

    /// Whether it is being closed or deleted, or has been.
    ///
    /// # Errors
    ///
    /// As [`TrayHandle::read`].
    pub fn is_retiring(&self) -> Result<bool, TrayError> {
        self.core.look(|state| state.retirement.is_some())
    }
}

impl<W: Tray> Clone for TrayHandle<W> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.core))
    }
}

impl<W: Tray> fmt::Debug for TrayHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrayHandle").field(&self.core.key).finish()
    }
}
