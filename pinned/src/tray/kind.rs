//! A declared tray without its type: what an instance's directory of trays opens.

use std::any::Any;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::core::{Core, Handler, Pump};
use super::definition::Tray;
use super::error::TrayError;
use super::handle::TrayHandle;
use super::key::Key;
use super::settings::Form;
use super::trays::Trays;
use crate::durability::{RowState, TrayKey};
use crate::error::BoxError;

type HookFn<W> =
    Arc<dyn Fn(TrayHandle<W>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// What an instance's type does when a tray of it opens and closes (T9.7, T9.9).
pub(crate) struct Hook<W: Tray> {
    pub(crate) open: HookFn<W>,
    pub(crate) close: HookFn<W>,
}

impl<W: Tray> Clone for Hook<W> {
    fn clone(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
            close: Arc::clone(&self.close),
        }
    }
}

/// A declared tray of one instance.
pub(crate) struct Declared<W: Tray> {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) handler: Handler<W>,
    pub(crate) hooks: Vec<Hook<W>>,
}

/// The same without its type.
pub(crate) trait Kind: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    fn form(&self) -> Form;
    /// Opens the tray of `key`: over `row` where there is one, else afresh.
    fn open(
        self: Arc<Self>,
        trays: Arc<Trays>,
        key: TrayKey,
        row: Option<RowState>,
    ) -> BoxFuture<'static, Result<Arc<dyn LiveTray>, TrayError>>;
}

impl<W: Tray> Kind for Declared<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn form(&self) -> Form {
        self.form
    }

    fn open(
        self: Arc<Self>,
        trays: Arc<Trays>,
        key: TrayKey,
        row: Option<RowState>,
    ) -> BoxFuture<'static, Result<Arc<dyn LiveTray>, TrayError>> {
        async move {
            let core = super::open::open(&self, &trays, key, row).await?;
            Ok(core as Arc<dyn LiveTray>)
        }
        .boxed()
    }
}

/// A live tray without its type.
pub(crate) trait LiveTray: Send + Sync + 'static {
    fn key(&self) -> &TrayKey;
    /// Whether it is being closed or deleted.
    fn is_retiring(&self) -> bool;
    /// It is in its directory.
    fn listed(&self);
    /// Starts the pump of a tray that has work, or always looks for some (T10.8, T10.9).
    fn start(self: Arc<Self>);
    /// Resolves when its retirement has ended.
    fn ended(self: Arc<Self>) -> BoxFuture<'static, ()>;
    /// Closes it with its instance, whatever its form (T17.3). Whether its end went well.
    fn close(self: Arc<Self>) -> BoxFuture<'static, bool>;
    fn forget_key(self: Arc<Self>, key: &Key) -> Result<(), TrayError>;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<W: Tray> LiveTray for Core<W> {
    fn key(&self) -> &TrayKey {
        &self.key
    }

    fn is_retiring(&self) -> bool {
        self.look(|state| state.retirement.is_some())
            .unwrap_or(false)
    }

    fn listed(&self) {
        let _ = self.look(|state| {
            if state.pump == Pump::Opening {
                state.pump = Pump::Standby;
            }
        });
        self.changed.notify_waiters();
    }

    fn start(self: Arc<Self>) {
        let started = self.segment(|state, _| {
            if state.pump != Pump::Running {
                state.pump = Pump::Idle;
            } else {
                state.asked = true;
            }
            state.kicked = self.form.is_always_open() || state.image.marked();
            Ok(())
        });
        // A log that takes nothing any more ends its instance by itself.
        drop(started);
    }

    fn ended(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Core::ended(self).boxed()
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, bool> {
        async move {
            match self.begin_close() {
                Ok(true) => Arc::clone(&self).close_after_pump().await,
                // Somebody else is at it.
                Ok(false) | Err(_) => Core::ended(Arc::clone(&self)).await,
            }
            self.look(|state| state.retirement.is_none_or(|retirement| retirement.clean))
                .unwrap_or(true)
        }
        .boxed()
    }

    fn forget_key(self: Arc<Self>, key: &Key) -> Result<(), TrayError> {
        Core::forget_key(&self, key)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
