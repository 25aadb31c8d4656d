//! What the fields of a tray have in common.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::entries::EntryText;
use crate::error::BoxError;

/// A durable field of a tray: [`Persistent`](crate::Persistent), [`PersistentQueue`](crate::PersistentQueue) or
/// [`PersistentOutbox`](crate::PersistentOutbox).
///
/// A field keeps its value, knows its entry in the row, and takes back what a failed segment did to it. It is not meant
/// to be implemented by hand, and its items may change in any release.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a durable field",
    label = "a tray cannot keep this",
    note = "make it `Persistent<T>`, `PersistentQueue<T>` or `PersistentOutbox<T>`, or put `#[tray(skip)]` before a field \
            that need not be kept"
)]
pub trait Field: Send + 'static {
    /// Takes its value from the stored entry, before anything else is asked of it.
    #[doc(hidden)]
    fn hydrate(&mut self, stored: Option<&RawValue>) -> Result<Hydrated, BoxError>;

    /// Takes up rows that its entry refers to.
    #[doc(hidden)]
    fn hydrate_chunk(&mut self, _chunk: u64, _stored: &RawValue) -> Result<(), BoxError> {
        Err("this field has no chunks".into())
    }

    /// What has changed since the last commit.
    #[doc(hidden)]
    fn changes(&mut self) -> Result<Changes, BoxError>;

    /// The changes stand.
    #[doc(hidden)]
    fn commit(&mut self);

    /// The changes are taken back. One that cannot be leaves a value that must not be written.
    #[doc(hidden)]
    fn rollback(&mut self) -> Result<(), BoxError>;

    /// The item in hand was acknowledged: what was taken for it is gone (T6.4).
    #[doc(hidden)]
    fn commit_takes(&mut self) {}

    /// The item in hand was not delivered after all: what was taken for it is back (T16.3).
    #[doc(hidden)]
    fn return_takes(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// A keyed admission begins: appends carry its key until it ends (T13.7, T13.8).
    #[doc(hidden)]
    fn begin_keyed(&mut self, _admission: &KeyedAdmission) {}

    /// The keyed admission ends.
    #[doc(hidden)]
    fn end_keyed(&mut self) -> KeyedCount {
        KeyedCount::default()
    }
}

/// What a durable field may hold. It names a missing derive once, where its parts would each be missed.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a store",
    label = "`{Self}`, or something in it, has no JSON form",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it; it owns its data, and is `Send`"
)]
pub trait Keepable: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Keepable for T {}

/// A field as its tray declares it: what `#[derive(Tray)]` makes of its type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a durable field",
    label = "a tray cannot keep this",
    note = "make it `Persistent<T>`, `PersistentQueue<T>` or `PersistentOutbox<T>`, or put `#[tray(skip)]` before a field \
            that need not be kept and is `Default`"
)]
pub trait DeclaredField {
    /// The field of a new row.
    fn declared() -> Self;

    /// The field without its type.
    fn as_field(&mut self) -> &mut dyn Field;
}

/// A field whose declaration may say what it holds at first: [`Persistent`](crate::Persistent).
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no initial value to declare",
    label = "`initial` goes with `Persistent<T>`",
    note = "queues and outboxes are empty at first"
)]
pub trait InitialField {
    /// What it holds.
    type Value;

    /// The field of a new row, which holds what `initial` gives.
    fn with_initial(initial: fn() -> Self::Value) -> Self;

    /// The field without its type.
    fn as_field(&mut self) -> &mut dyn Field;
}

/// What a [`Persistent`](crate::Persistent) holds at first where nothing is said.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "nothing says what a new `Persistent<{Self}>` holds",
    label = "`{Self}` is not `Default`",
    note = "derive `Default` for `{Self}`, or write `#[tray(initial = ..)]` before the field (on a hosted struct \
            `#[durable(initial = ..)]`)"
)]
pub trait InitialByDefault {
    /// That value.
    fn initial() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> InitialByDefault for T {
    fn initial() -> Self {
        T::default()
    }
}

/// The value of a field that is not kept, in a new live tray or instance.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "nothing says what a field of type `{Self}` holds at first",
    label = "not durable, and not `Default`",
    note = "derive or implement `Default` for `{Self}`",
    note = "a hosted struct may say `#[durable(setup)]` instead, and be built by its own \
            `#[lifespan::setup] async fn setup(ctx: Context, stored: Stored<Self>) -> Self`"
)]
pub trait UnkeptField {
    /// That value.
    fn unkept() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> UnkeptField for T {
    fn unkept() -> Self {
        T::default()
    }
}

/// What a field found in the row.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Hydrated {
    /// Rows that are still to be read, from the first to before the second.
    pub(crate) chunks: Option<(u64, u64)>,
}

/// What a segment did to a field.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Changes {
    /// The entry as it is now, where it changed: its text, or that it is gone.
    pub(crate) entry: Option<Option<EntryText>>,
    /// Rows beside the tray's own: their text, or that they are gone.
    pub(crate) chunks: Vec<(u64, Option<EntryText>)>,
}

/// The key that appends are tagged with.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct KeyedAdmission {
    pub(crate) key: super::key::Key,
    /// The target holds the key already: every append is dropped.
    pub(crate) ignored: bool,
}

/// What came of the appends of a keyed admission.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct KeyedCount {
    pub(crate) attempted: usize,
    pub(crate) landed: usize,
    /// A rule that the body broke.
    pub(crate) broken: Option<&'static str>,
}

impl KeyedCount {
    pub(crate) fn add(&mut self, other: Self) {
        self.attempted += other.attempted;
        self.landed += other.landed;
        self.broken = self.broken.or(other.broken);
    }
}

/// How deep a value may be nested. What parses JSON stops at 128, with what stands around a value in its row; one that is
/// deeper could be stored, and never be read again.
const DEEPEST: usize = 120;

/// The JSON text of a value.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<EntryText, BoxError> {
    let text = serde_json::to_string(value)?;
    match is_too_deep(&text) {
        true => Err(format!("it is nested more than {DEEPEST} deep").into()),
        false => Ok(text.into()),
    }
}

/// The same of a value that is read again. What is no finite number becomes `null`, which no number is made of.
pub(crate) fn encode_kept<T: Serialize + DeserializeOwned>(
    value: &T,
) -> Result<EntryText, BoxError> {
    let text = encode(value)?;
    if text.contains("null") {
        serde_json::from_str::<T>(&text)?;
    }
    Ok(text)
}

fn is_too_deep(json: &str) -> bool {
    let (mut depth, mut inside, mut escaped) = (0_usize, false, false);
    // So short a text cannot be.
    json.len() > DEEPEST
        && json.bytes().any(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = inside,
                b'"' => inside = !inside,
                b'[' | b'{' if !inside => depth += 1,
                b']' | b'}' if !inside => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > DEEPEST
        })
}

/// Whether two texts are the same JSON. Texts that were written alike are compared as they are; others have the same
/// length at least when only the order of keys differs.
pub(crate) fn same_json(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    one.len() == other.len()
        && one.starts_with(['{', '['])
        && match (
            serde_json::from_str::<serde_json::Value>(one),
            serde_json::from_str::<serde_json::Value>(other),
        ) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}
