//! The trait that `#[pinned_api]` implements, and its type-erased form.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::context::Context;
use super::lifespan::SetupError;
use super::route::{Route, RouteSpec};
use super::tray::TrayDeclaration;
use crate::error::BoxError;

/// The options of a block's attribute; `None` is the host's default (H16.1).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclaredOptions {
    pub idle_timeout: Option<Duration>,
    pub release_placement_on_idle: Option<bool>,
    pub detached_timeout: Option<Duration>,
    pub sweep_interval: Option<Duration>,
    pub max_instances: Option<usize>,
    pub max_concurrent_activations: Option<usize>,
    pub activation_queue_deadline: Option<Duration>,
    pub turn_timeout: Option<Duration>,
    pub max_waiting: Option<usize>,
    pub env: Option<&'static str>,
}

impl DeclaredOptions {
    /// Nothing declared.
    pub const NONE: Self = Self {
        idle_timeout: None,
        release_placement_on_idle: None,
        detached_timeout: None,
        sweep_interval: None,
        max_instances: None,
        max_concurrent_activations: None,
        activation_queue_deadline: None,
        turn_timeout: None,
        max_waiting: None,
        env: None,
    };
}

/// A struct that can be hosted: one live instance of it per id.
///
/// `#[pinned_api]` implements it; it is not meant to be implemented by hand, and its hidden items may
/// change in any release. Bring it into scope to list a type's routes:
///
/// ```
/// use pinned::{PinnedApi, pinned_api, route};
///
/// #[derive(Default)]
/// struct Counter { count: u64 }
///
/// #[pinned_api("/counters")]
/// impl Counter {
///     #[route::get("/")]
///     async fn read(&self) -> String { self.count.to_string() }
/// }
///
/// assert_eq!(Counter::NAMESPACE, Some("/counters"));
/// assert_eq!(Counter::routes().count(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a pinned type",
    label = "this type has no `#[pinned_api]` block",
    note = "put `#[pinned_api(\"/namespace\")]` on an inherent impl block of `{Self}`"
)]
pub trait PinnedApi: Sized + Send + Sync + 'static {
    /// The namespace of the attribute, or `None` for a type that is mounted by hand.
    const NAMESPACE: Option<&'static str>;

    /// The crate that the type is in.
    #[doc(hidden)]
    const PACKAGE: &'static str;

    #[doc(hidden)]
    const OPTIONS: DeclaredOptions;

    #[doc(hidden)]
    const ROUTES: &'static [Route];

    #[doc(hidden)]
    const TRAYS: &'static [&'static dyn TrayDeclaration] = &[];

    /// Whether instances keep anything in a state store.
    #[doc(hidden)]
    fn needs_store() -> bool {
        false
    }

    #[doc(hidden)]
    fn setup(ctx: Context) -> BoxFuture<'static, Result<Self, SetupError>>;

    #[doc(hidden)]
    fn teardown(&mut self) -> BoxFuture<'_, Result<(), BoxError>> {
        futures_util::future::ready(Ok(())).boxed()
    }

    #[doc(hidden)]
    fn stats(&self) -> Option<Result<Value, serde_json::Error>> {
        None
    }

    /// The routes of this type, in the order of the block.
    fn routes() -> impl Iterator<Item = &'static RouteSpec> {
        Self::ROUTES.iter().map(|route| &route.spec)
    }
}

/// An instance's value without its type: what its turns hand around (`seam::Turn`).
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

type SetupFn = fn(Context) -> BoxFuture<'static, Result<AnyValue, SetupError>>;
type TeardownFn = fn(AnyValue) -> BoxFuture<'static, Result<(), BoxError>>;
type StatsFn = fn(&AnyValue) -> Option<Result<Value, serde_json::Error>>;

/// An annotated type without its type: all that a host needs to run instances of it.
#[derive(Clone, Copy)]
pub(crate) struct Blueprint {
    pub(crate) type_name: &'static str,
    pub(crate) type_id: fn() -> TypeId,
    pub(crate) package: &'static str,
    pub(crate) namespace: Option<&'static str>,
    pub(crate) options: DeclaredOptions,
    pub(crate) routes: &'static [Route],
    pub(crate) trays: &'static [&'static dyn TrayDeclaration],
    pub(crate) needs_store: fn() -> bool,
    pub(crate) setup: SetupFn,
    pub(crate) teardown: TeardownFn,
    pub(crate) stats: StatsFn,
}

impl Blueprint {
    /// The blueprint of `T`.
    pub(crate) fn of<T: PinnedApi>() -> Self {
        Self {
            type_name: type_name::<T>(),
            type_id: TypeId::of::<T>,
            package: T::PACKAGE,
            namespace: T::NAMESPACE,
            options: T::OPTIONS,
            routes: T::ROUTES,
            trays: T::TRAYS,
            needs_store: T::needs_store,
            setup: |ctx| {
                let setup = T::setup(ctx);
                async move { Ok(Arc::new(setup.await?) as AnyValue) }.boxed()
            },
            teardown: |value| {
                async move {
                    let value = value.downcast::<T>().ok().and_then(Arc::into_inner);
                    match value {
                        Some(mut value) => value.teardown().await,
                        None => Err("the instance's value is held elsewhere".into()),
                    }
                }
                .boxed()
            },
            stats: |value| value.downcast_ref::<T>()?.stats(),
        }
    }
}
