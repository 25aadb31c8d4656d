//! Durable fields on a hosted struct: loaded before its setup, kept in one row beside its trays.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::context::Context;
use super::definition::PinnedApi;
use super::lifespan::{SetupByDefault, SetupError};
use super::route::RouteSpec;
use crate::durability::StoreError;
use crate::error::BoxError;
use crate::tray::link::{Link, OwnRow, own_row};
use crate::tray::{Field, Image, InitialByDefault, Keepable, Persistent, TrayError, entries_of};

/// A hosted struct with [`Persistent`] fields.
///
/// `#[derive(Durable)]` implements it. Without a setup, the fields that are not durable are `Default`. With one, it says
/// so (`#[durable(setup)]`) and is given the durable fields, as they were stored:
///
/// ```
/// use pinned::{Context, Durable, Persistent, Stored, lifespan, pinned_api};
///
/// #[derive(Durable)]
/// #[durable(setup)]
/// struct Account {
///     balance: Persistent<i64>,
///     currency: String,
/// }
///
/// #[pinned_api("/accounts")]
/// impl Account {
///     #[lifespan::setup]
///     async fn setup(ctx: Context, stored: Stored<Self>) -> Self {
///         Self { balance: stored.balance, currency: ctx.id().to_owned() }
///     }
/// }
/// ```
///
/// A value that was stored and is not what its field expects fails the activation, so that nothing is lost: let its type
/// accept both forms (`#[serde(default)]`, an untagged enum) when it changes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no durable fields",
    label = "this struct has no `#[derive(Durable)]`",
    note = "derive `pinned::Durable` for `{Self}`"
)]
pub trait Durable: Sized + Send + 'static {
    /// The durable fields alone, by the names that they have in the struct.
    type Stored: Send + 'static;

    #[doc(hidden)]
    fn declared() -> Self::Stored;

    #[doc(hidden)]
    fn fields(stored: &mut Self::Stored, visit: &mut dyn FnMut(&'static str, &mut dyn OwnField));
}

/// The durable fields of `T`, as its setup is given them.
pub type Stored<T> = <T as Durable>::Stored;

/// A durable struct that needs no setup.
#[doc(hidden)]
pub trait DurableByDefault: Durable {
    fn from_stored(stored: Self::Stored) -> Self;
}

/// A field that may stand on an instance itself: [`Persistent`].
#[doc(hidden)]
pub trait OwnField: Field {
    #[doc(hidden)]
    fn attach_to(&mut self, place: OwnPlace);
    #[doc(hidden)]
    fn load(&mut self, stored: Option<&RawValue>) -> Result<(), BoxError>;
}

/// The same as `#[derive(Durable)]` declares it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a durable field of a hosted struct",
    label = "not a `Persistent<T>`",
    note = "make it `Persistent<T>`; queues and outboxes stand in trays"
)]
pub trait OwnDeclared {
    /// The field of a new instance.
    fn declared() -> Self;

    /// The field without its type.
    fn as_own(&mut self) -> &mut dyn OwnField;
}

/// The same with `#[durable(initial = ..)]`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a durable field of a hosted struct",
    label = "not a `Persistent<T>`",
    note = "make it `Persistent<T>`; queues and outboxes stand in trays"
)]
pub trait OwnInitial {
    /// What it holds.
    type Value;

    /// The field of a new instance, which holds what `initial` gives.
    fn with_initial(initial: fn() -> Self::Value) -> Self;

    /// The field without its type.
    fn as_own(&mut self) -> &mut dyn OwnField;
}

impl<T: Keepable + InitialByDefault> OwnDeclared for Persistent<T> {
    fn declared() -> Self {
        Self::declared(T::initial)
    }

    fn as_own(&mut self) -> &mut dyn OwnField {
        self
    }
}

impl<T: Keepable> OwnInitial for Persistent<T> {
    type Value = T;

    fn with_initial(initial: fn() -> T) -> Self {
        Self::declared(initial)
    }

    fn as_own(&mut self) -> &mut dyn OwnField {
        self
    }
}

/// A field's place in its instance's own row.
#[doc(hidden)]
pub struct OwnPlace(Link);

impl<T: Serialize + DeserializeOwned + Send + 'static> OwnField for Persistent<T> {
    fn attach_to(&mut self, OwnPlace(link): OwnPlace) {
        self.attach(link);
    }

    fn load(&mut self, stored: Option<&RawValue>) -> Result<(), BoxError> {
        self.hydrate(stored).map(drop)
    }
}

/// Reads the instance's own row, and gives its fields, which write through to it from here on.
///
/// # Errors
///
/// There is no store, it cannot be read, or a value is not what its field expects.
#[doc(hidden)]
pub async fn load_stored<T: PinnedApi + Durable>(ctx: Context) -> Result<T::Stored, SetupError> {
    let frontier = ctx.frontier()?;
    let claim = frontier.claim();
    let row = frontier.store().get_tray(claim, own_row()).await;
    let row = row.map_err(|error: StoreError| SetupError::new(error))?;
    let mut stored = T::declared();
    let image = match row {
        None => Image::default(),
        Some(row) => Image::restored(row.marked, entries_of(&row.doc)),
    };
    let mut failed: Option<TrayError> = None;
    T::fields(&mut stored, &mut |name, field| {
        let text = image.get(name).map(|text| serde_json::from_str(text));
        let loaded = text
            .transpose()
            .map_err(BoxError::from)
            .and_then(|text| field.load(text));
        if let Err(error) = loaded {
            failed.get_or_insert_with(|| TrayError::Malformed {
                tray: own_row(),
                entry: name.to_owned(),
                reason: error.to_string(),
            });
        }
    });
    if let Some(error) = failed {
        return Err(SetupError::new(error));
    }
    let row = OwnRow::new(frontier, image);
    T::fields(&mut stored, &mut |name, field| {
        field.attach_to(OwnPlace(Link::new(&row, name)));
    });
    Ok(stored)
}

/// How an instance is made where its block has no setup: a durable struct from what is stored, any other by `Default`.
///
/// Generated code asks for it by method, and what the struct is decides which of the two traits answers.
#[doc(hidden)]
pub struct WithoutSetup<T>(std::marker::PhantomData<fn() -> T>);

impl<T> WithoutSetup<T> {
    #[doc(hidden)]
    pub const NEW: Self = Self(std::marker::PhantomData);
}

/// The way of a durable struct.
#[doc(hidden)]
pub trait FromStored {
    type Made;
    fn make(&self, ctx: Context) -> BoxFuture<'static, Result<Self::Made, SetupError>>;
}

impl<T: PinnedApi + DurableByDefault> FromStored for WithoutSetup<T> {
    type Made = T;

    fn make(&self, ctx: Context) -> BoxFuture<'static, Result<T, SetupError>> {
        async move { load_stored::<T>(ctx).await.map(T::from_stored) }.boxed()
    }
}

/// The way of any other struct.
#[doc(hidden)]
pub trait FromDefault<T> {
    fn make(&self, ctx: Context) -> BoxFuture<'static, Result<T, SetupError>>
    where
        T: PinnedApi + SetupByDefault;
}

impl<T> FromDefault<T> for &WithoutSetup<T> {
    fn make(&self, ctx: Context) -> BoxFuture<'static, Result<T, SetupError>>
    where
        T: PinnedApi + SetupByDefault,
    {
        drop(ctx);
        async { Ok(T::by_default()) }.boxed()
    }
}

/// Whether instances of `T` keep anything: trays, durable fields, or effects that a durable route waits for.
#[doc(hidden)]
pub fn needs_store<T: PinnedApi>(is_durable: bool) -> bool {
    is_durable || !T::TRAYS.is_empty() || T::routes().any(RouteSpec::is_durable)
}

/// Whether a struct has durable fields.
#[doc(hidden)]
pub trait IsDurable {
    fn is_durable(&self) -> bool {
        true
    }
}

impl<T: Durable> IsDurable for WithoutSetup<T> {}

/// The answer for any other struct.
#[doc(hidden)]
pub trait IsNotDurable {
    fn is_durable(&self) -> bool {
        false
    }
}

impl<T> IsNotDurable for &WithoutSetup<T> {}
