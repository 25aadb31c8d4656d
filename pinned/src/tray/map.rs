//! A map of trays, and how a type names its trays.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::definition::Tray;
use super::error::TrayError;
use super::handle::{AdmissionReturn, TrayHandle};
use super::trays::{Absent, Trays};
use crate::durability::Receipt;

/// The name of a single tray of `T`: the constant that `#[tray]` declares beside its handler.
pub struct SingleTray<T, W> {
    name: &'static str,
    of: PhantomData<fn() -> (T, W)>,
}

/// The name of a map of trays of `T`: the constant that `#[tray(map)]` declares beside its handler.
pub struct MappedTray<T, W> {
    name: &'static str,
    of: PhantomData<fn() -> (T, W)>,
}

macro_rules! name {
    ($name:ident) => {
        impl<T, W> $name<T, W> {
            /// Used by generated code alone.
            #[doc(hidden)]
            pub const fn new(name: &'static str) -> Self {
                Self {
                    name,
                    of: PhantomData,
                }
            }

            /// The declared name.
            pub const fn name(&self) -> &'static str {
                self.name
            }
        }

        impl<T, W> Clone for $name<T, W> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T, W> Copy for $name<T, W> {}

        impl<T, W> fmt::Debug for $name<T, W> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.name).finish()
            }
        }
    };
}

name!(SingleTray);
name!(MappedTray);

/// The trays of one `#[tray(map)]`, by ids of the caller's choice (T1.8).
///
/// A tray of a map is live while it has work; when there is none left it closes, and its row stays. Getting it opens it
/// again. A handle of one that has closed refuses admissions: [`TrayMap::admit`] takes care of that.
pub struct TrayMap<W: Tray> {
    trays: Arc<Trays>,
    name: &'static str,
    of: PhantomData<fn() -> W>,
}

impl<W: Tray> TrayMap<W> {
    pub(crate) fn new(trays: Arc<Trays>, name: &'static str) -> Self {
        Self {
            trays,
            name,
            of: PhantomData,
        }
    }

    /// The tray of `id`, made if there is none.
    ///
    /// # Errors
    ///
    /// A malformed row, a failed setup, an instance that is closing, and whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; an opening that was under way is given up.
    pub async fn get_or_create(&self, id: &str) -> Result<TrayHandle<W>, TrayError> {
        let core = self.trays.get(self.name, id, Absent::Create).await?;
        Ok(TrayHandle::new(core))
    }

    /// The tray of `id`.
    ///
    /// # Errors
    ///
    /// [`TrayError::NotFound`] without a row of it, and those of [`TrayMap::get_or_create`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; an opening that was under way is given up.
    pub async fn get(&self, id: &str) -> Result<TrayHandle<W>, TrayError> {
        let core = self.trays.get(self.name, id, Absent::Refuse).await?;
        Ok(TrayHandle::new(core))
    }

    /// Admits work into the tray of `id`, made if there is none: [`TrayHandle::admit`] on a tray that may be closing at
    /// this very moment.
    ///
    /// # Errors
    ///
    /// Those of [`TrayMap::get_or_create`] and of [`TrayHandle::admit`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, the work may or may not have been admitted.
    pub async fn admit<R: AdmissionReturn>(
        &self,
        id: &str,
        admission: impl FnOnce(&mut W) -> R,
    ) -> Result<Receipt, TrayError> {
        let mut admission = Some(admission);
        loop {
            let tray = self.get_or_create(id).await?;
            let admitted = tray.admit(|tray| match admission.take() {
                Some(admission) => admission(tray).into_admission(),
                None => Err("an admission runs once".into()),
            });
            match admitted {
                // Retired in between, before the admission ran: the next one is the tray anew.
                Err(TrayError::Closed(_) | TrayError::Deleted(_)) if admission.is_some() => {
                    tray.deleted().await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Durably admits the deletion of the tray of `id` (T15.6).
    ///
    /// # Errors
    ///
    /// [`TrayError::NotFound`] without a row of it, and those of [`TrayMap::get_or_create`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, the deletion may or may not have been admitted.
    pub async fn delete(&self, id: &str) -> Result<Receipt, TrayError> {
        loop {
            let tray = self.get(id).await?;
            match tray.delete() {
                Err(TrayError::Closed(_)) => tray.deleted().await,
                outcome => return outcome,
            }
        }
    }

    /// The trays that are live at the moment.
    pub fn live(&self) -> Vec<TrayHandle<W>> {
        let live = self.trays.live_of(self.name);
        live.into_iter().map(TrayHandle::new).collect()
    }

    /// Whether the tray of `id` is live, and being closed or deleted.
    pub fn is_retiring(&self, id: &str) -> bool {
        let live = self.live();
        live.iter()
            .any(|tray| tray.id() == id && tray.is_retiring().unwrap_or(false))
    }
}

impl<W: Tray> Clone for TrayMap<W> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.trays), self.name)
    }
}

impl<W: Tray> fmt::Debug for TrayMap<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrayMap").field(&self.name).finish()
    }
}
