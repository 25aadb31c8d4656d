//! The traits of a tray's struct.

use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::field::Field;
use super::handle::TrayHandle;
use super::settings::TraySettings;
use crate::error::BoxError;

/// The durable fields of a tray, and what it works through.
///
/// `#[derive(Tray)]` implements it; it is not meant to be implemented by hand, and its hidden items may change in any
/// release. The queue is what the tray's handler works through, item by item:
///
/// ```
/// use pinned::{Persistent, PersistentQueue, Tray};
///
/// #[derive(Tray)]
/// struct Work {
///     queue: PersistentQueue<String>,
///     done: Persistent<u64>,
/// }
/// ```
///
/// With several queues `#[tray(items)]` before one says which. With `#[tray(source)]` on the struct it is whatever
/// [`TraySource`] says, and with `#[tray(lifecycle)]` a [`TrayLifecycle`] runs around its life. A field that need not
/// be kept stands behind `#[tray(skip)]` and is `Default`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tray",
    label = "this type has no `#[derive(Tray)]`",
    note = "derive `pinned::Tray` for `{Self}`"
)]
pub trait Tray: Sized + Send + 'static {
    /// What the tray's handler is given, one at a time.
    type Item: Send + 'static;

    #[doc(hidden)]
    const SETTINGS: TraySettings;

    #[doc(hidden)]
    fn declared() -> Self;

    #[doc(hidden)]
    fn fields(&mut self, visit: &mut dyn FnMut(&'static str, &mut dyn Field));

    #[doc(hidden)]
    fn next_item(&mut self) -> Result<Option<Self::Item>, BoxError>;

    #[doc(hidden)]
    fn ack_item(&mut self);

    #[doc(hidden)]
    fn setup(_tray: TrayHandle<Self>) -> BoxFuture<'static, Result<(), BoxError>> {
        ready(Ok(())).boxed()
    }

    #[doc(hidden)]
    fn teardown(_tray: TrayHandle<Self>) -> BoxFuture<'static, Result<(), BoxError>> {
        ready(Ok(())).boxed()
    }
}

/// What a tray works through, for one that is not simply a queue: `#[tray(source)]` on its struct asks for it.
///
/// ```
/// use pinned::{BoxError, Persistent, PersistentQueue, Tray, TraySource};
///
/// #[derive(Tray)]
/// #[tray(source)]
/// struct Lots {
///     urgent: PersistentQueue<String>,
///     later: PersistentQueue<String>,
///     from_urgent: Persistent<bool>,
/// }
///
/// impl TraySource for Lots {
///     type Item = String;
///
///     fn next(&mut self) -> Result<Option<String>, BoxError> {
///         self.from_urgent.set(!self.urgent.is_empty());
///         Ok(self.urgent.peek().or(self.later.peek()).cloned())
///     }
///
///     fn ack(&mut self) {
///         if *self.from_urgent { self.urgent.pop_front(); } else { self.later.pop_front(); }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it works through",
    label = "`TraySource` is not implemented",
    note = "`#[tray(source)]` on the struct asks for `impl TraySource for {Self}`"
)]
pub trait TraySource: Sized + Send + 'static {
    /// What the tray's handler is given.
    type Item: Send + 'static;

    /// The item to work on now; `None` when there is nothing to do. It runs in a segment of its own.
    ///
    /// It must depend on the durable fields alone, so that after a crash the same item comes again. Asked again before
    /// [`TraySource::ack`], it gives the same item.
    ///
    /// # Errors
    ///
    /// The instance is aborted; the item comes again with the next activation.
    fn next(&mut self) -> Result<Option<Self::Item>, BoxError>;

    /// The item that [`TraySource::next`] gave last was handled: it must not come again. What this changes is one write
    /// with the acknowledgement.
    fn ack(&mut self);
}

/// What runs when a tray opens and closes: `#[tray(lifecycle)]` on its struct asks for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what runs when it opens and closes",
    label = "`TrayLifecycle` is not implemented",
    note = "`#[tray(lifecycle)]` on the struct asks for `impl TrayLifecycle for {Self}`"
)]
pub trait TrayLifecycle: Tray {
    /// Runs before the tray takes admissions or handles items.
    ///
    /// # Errors
    ///
    /// The tray does not open.
    fn opened(tray: TrayHandle<Self>) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Runs after the last item; the tray takes no writes any more.
    ///
    /// # Errors
    ///
    /// Logged; the tray closes all the same.
    fn closed(tray: TrayHandle<Self>) -> impl Future<Output = Result<(), BoxError>> + Send {
        drop(tray);
        ready(Ok(()))
    }
}
