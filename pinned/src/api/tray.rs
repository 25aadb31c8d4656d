//! Declared trays, as generated code names them, and their way to an instance (T1).

use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::chain::Origin;
use super::definition::PinnedApi;
use super::instance::Instance;
use super::scope::{Held, Scope, TakenTurns};
use super::seam::{InstanceSeam, Seam};
use crate::error::BoxError;
use crate::tray::kind::{Declared, Hook, Kind};
use crate::tray::settings::Form;
use crate::tray::{Dispatch, Tray, TrayHandle};

/// What a tray's handler comes to.
type Ended = BoxFuture<'static, Result<(), BoxError>>;

/// The handler of a tray, as generated code has it.
pub(crate) type TrayHandlerFn<T, W> = fn(Instance<T>, <W as Tray>::Item, Dispatch<W>) -> Ended;

/// One half of a hook.
pub(crate) type TrayHookFn<T, W> = fn(Instance<T>, TrayHandle<W>) -> Ended;

/// What an instance's type does when a tray of it opens, or closes.
#[doc(hidden)]
pub struct TrayHook<T, W: Tray> {
    pub open: Option<TrayHookFn<T, W>>,
    pub close: Option<TrayHookFn<T, W>>,
}

/// What a tray's handler, or a hook, may return: nothing, or a `Result` whose value is ignored (T11.7).
#[diagnostic::on_unimplemented(
    message = "the handler of a tray returns nothing or a `Result`, not `{Self}`",
    label = "unsupported return type",
    note = "an error aborts the instance, and the item comes again"
)]
pub trait TrayReturn {
    #[doc(hidden)]
    fn into_tray_return(self) -> Result<(), BoxError>;
}

impl TrayReturn for () {
    fn into_tray_return(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<V, E: Into<BoxError>> TrayReturn for Result<V, E> {
    fn into_tray_return(self) -> Result<(), BoxError> {
        self.map(drop).map_err(Into::into)
    }
}

/// `I` itself: the item in a handler's arguments.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the items of this tray are `{I}`, not `{Self}`",
    label = "not what the tray works through",
    note = "write `item: {I}`, or name another tray in `Dispatch<..>`"
)]
pub trait HandledItem<I> {
    fn handled(item: I) -> Self;
}

impl<I> HandledItem<I> for I {
    fn handled(item: I) -> Self {
        item
    }
}

/// One `#[tray]` of a block.
#[doc(hidden)]
pub struct DeclaredTray<T: 'static, W: Tray> {
    name: &'static str,
    form: Form,
    handler: TrayHandlerFn<T, W>,
    hooks: &'static [TrayHook<T, W>],
    of: PhantomData<fn() -> T>,
}

impl<T: PinnedApi, W: Tray> DeclaredTray<T, W> {
    /// A single tray.
    pub const fn single(
        name: &'static str,
        handler: TrayHandlerFn<T, W>,
        hooks: &'static [TrayHook<T, W>],
    ) -> Self {
        Self::new(name, Form::Single, handler, hooks)
    }

    /// A map of trays.
    pub const fn map(
        name: &'static str,
        always_open: bool,
        handler: TrayHandlerFn<T, W>,
        hooks: &'static [TrayHook<T, W>],
    ) -> Self {
        Self::new(name, Form::Map { always_open }, handler, hooks)
    }

    const fn new(
        name: &'static str,
        form: Form,
        handler: TrayHandlerFn<T, W>,
        hooks: &'static [TrayHook<T, W>],
    ) -> Self {
        Self {
            name,
            form,
            handler,
            hooks,
            of: PhantomData,
        }
    }
}

/// A declared tray without its types.
#[doc(hidden)]
pub trait TrayDeclaration: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    fn bind(&self, seam: TraySeam) -> BoundTray;
}

/// The instance that a declaration is bound to; it does not keep it.
#[doc(hidden)]
pub struct TraySeam(Weak<dyn InstanceSeam>);

/// A declaration of one instance.
#[doc(hidden)]
pub struct BoundTray(Arc<dyn Kind>);

/// The declarations of an instance, bound to it.
pub(crate) fn bind(
    declarations: &[&'static dyn TrayDeclaration],
    seam: &Seam,
) -> Vec<Arc<dyn Kind>> {
    let bound = declarations
        .iter()
        .map(|tray| tray.bind(TraySeam(Arc::downgrade(seam))).0);
    bound.collect()
}

impl<T: PinnedApi, W: Tray> TrayDeclaration for DeclaredTray<T, W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn bind(&self, TraySeam(seam): TraySeam) -> BoundTray {
        let handler = self.handler;
        let hooks = self.hooks.iter().map(|hook| Hook {
            open: hook_of(Weak::clone(&seam), hook.open, Held::Taken),
            // A close waits for it, and cuts nothing off there.
            close: hook_of(Weak::clone(&seam), hook.close, Held::TakenToTheEnd),
        });
        BoundTray(Arc::new(Declared {
            name: self.name,
            form: self.form,
            hooks: hooks.collect(),
            handler: Arc::new(move |item, dispatch| {
                on_instance(&seam, Held::Taken, |instance| {
                    handler(instance, item, dispatch)
                })
            }),
        }))
    }
}

fn hook_of<T: PinnedApi, W: Tray>(
    seam: Weak<dyn InstanceSeam>,
    hook: Option<TrayHookFn<T, W>>,
    held: fn(Arc<TakenTurns>) -> Held,
) -> Arc<dyn Fn(TrayHandle<W>) -> Ended + Send + Sync> {
    Arc::new(move |tray| match hook {
        None => futures_util::future::ready(Ok(())).boxed(),
        Some(hook) => on_instance(&seam, held, |instance| hook(instance, tray)),
    })
}

/// Runs the instance's own code, as whoever may take turns of it (as a handler with `this: Instance<Self>`).
fn on_instance<T: PinnedApi>(
    seam: &Weak<dyn InstanceSeam>,
    held: fn(Arc<TakenTurns>) -> Held,
    run: impl FnOnce(Instance<T>) -> Ended,
) -> Ended {
    let Some(seam) = seam.upgrade() else {
        return futures_util::future::ready(Err("the instance has ended".into())).boxed();
    };
    let scope = Scope::new(Arc::clone(&seam), held(Arc::default()), Origin::default());
    scope.run(run(Instance::new(seam))).boxed()
}
