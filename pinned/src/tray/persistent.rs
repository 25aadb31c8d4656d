//! One durable value (T4).

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::entries::EntryText;
use super::field::{
    Changes, DeclaredField, Field, Hydrated, InitialByDefault, InitialField, Keepable, encode,
    encode_kept, same_json,
};
use super::link::Link;
use super::mirror::Mirror;
use crate::error::BoxError;
use crate::observable::{ObservableError, ObservableView};

/// A value that is kept in the state store, in a tray or on an instance itself.
///
/// It reads like the value; every change goes through [`Persistent::set`] or [`Persistent::update`] and is on its way to
/// the store at once. On an instance the changes of one call are enlisted one by one, unless
/// [`Frontier::atomic`](crate::durability::Frontier::atomic) puts several together; in a tray all changes of one segment
/// are one write.
///
/// ```
/// use pinned::{Durable, Json, Persistent, pinned_api, route};
///
/// #[derive(Durable)]
/// struct Counter { count: Persistent<u64> }
///
/// #[pinned_api("/counters")]
/// impl Counter {
///     /// Answers once the new count is durable.
///     #[route::post("/increment", durable)]
///     async fn increment(&mut self) -> Json<u64> {
///         self.count.update(|count| *count += 1);
///         Json(*self.count)
///     }
/// }
/// ```
///
/// A value that equals the declared initial one has no entry in the row (T4.2).
pub struct Persistent<T> {
    value: T,
    initial: fn() -> T,
    /// The text of the initial value: what is not worth an entry.
    absent: EntryText,
    /// The entry as it was committed last.
    committed: Option<EntryText>,
    /// The entry as it is to be, once it was asked for.
    pending: Option<Option<EntryText>>,
    changed: bool,
    link: Option<Link>,
    mirror: Option<Mirror>,
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Persistent<T> {
    /// A field with its declared initial value.
    pub(crate) fn declared(initial: fn() -> T) -> Self {
        let value = initial();
        Self {
            // A value without a JSON form is found when it is first written; until then it equals nothing.
            absent: encode(&value).unwrap_or_else(|_| "".into()),
            value,
            initial,
            committed: None,
            pending: None,
            changed: false,
            link: None,
            mirror: None,
        }
    }

    /// Puts `value` in the place of the one before.
    ///
    /// # Panics
    ///
    /// On an instance, within a segment of another instance.
    pub fn set(&mut self, value: T) {
        self.value = value;
        self.touch();
    }

    /// Changes the value in place.
    ///
    /// # Panics
    ///
    /// As [`Persistent::set`].
    pub fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        // Before the change: should it panic, what it left half done is taken back with its segment.
        self.changed = true;
        let outcome = change(&mut self.value);
        self.touch();
        outcome
    }

    /// Back to the declared initial value, which has no entry (T4.2).
    pub fn reset(&mut self) {
        self.set((self.initial)());
    }

    /// The value as others may watch it, or mount it in an [`Observable`](crate::Observable) of their own (T5.6): each
    /// change shows when it stands, as ops at whatever depth it happened. It cannot be changed through that.
    ///
    /// # Errors
    ///
    /// The value is none that an observable can hold, such as one with integers beyond 2^53 - 1.
    pub fn observe(&mut self) -> Result<ObservableView<T>, ObservableError> {
        let mirror = match self.mirror.take() {
            Some(mirror) => mirror,
            None => Mirror::of(&self.value)?,
        };
        Ok(self.mirror.insert(mirror).view())
    }

    fn touch(&mut self) {
        self.changed = true;
        let Some(link) = self.link.clone() else {
            return;
        };
        match self.changes() {
            Ok(changes) => {
                if let Some(entry) = changes.entry {
                    link.write(entry);
                }
                // On its way before anybody who watches hears of it (O7.2).
                self.commit();
            }
            Err(error) => link.fail(error),
        }
    }

    /// Writes through to the row of an instance from here on.
    pub(crate) fn attach(&mut self, link: Link) {
        self.link = Some(link);
    }

    fn entry(&self) -> Result<Option<EntryText>, BoxError> {
        let text = encode_kept(&self.value)?;
        Ok((!same_json(&text, &self.absent)).then_some(text))
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Field for Persistent<T> {
    fn hydrate(&mut self, stored: Option<&RawValue>) -> Result<Hydrated, BoxError> {
        if let Some(stored) = stored {
            self.value = serde_json::from_str(stored.get())?;
            self.committed = Some(stored.get().into());
        }
        Ok(Hydrated::default())
    }

    fn changes(&mut self) -> Result<Changes, BoxError> {
        if !self.changed {
            return Ok(Changes::default());
        }
        let entry = self.entry()?;
        let same = match (&entry, &self.committed) {
            (None, None) => true,
            (Some(one), Some(other)) => same_json(one, other),
            _ => false,
        };
        self.pending = (!same).then(|| entry.clone());
        Ok(Changes {
            entry: (!same).then_some(entry),
            ..Changes::default()
        })
    }

    fn commit(&mut self) {
        self.changed = false;
        if let Some(entry) = self.pending.take() {
            self.committed = entry;
            if let Some(mirror) = &self.mirror {
                mirror.follow(&self.value);
            }
        }
    }

    fn rollback(&mut self) -> Result<(), BoxError> {
        self.pending = None;
        if self.changed {
            self.value = match &self.committed {
                Some(text) => serde_json::from_str(text)?,
                None => (self.initial)(),
            };
            self.changed = false;
        }
        Ok(())
    }
}

impl<T: Keepable + InitialByDefault> DeclaredField for Persistent<T> {
    fn declared() -> Self {
        Self::declared(T::initial)
    }

    fn as_field(&mut self) -> &mut dyn Field {
        self
    }
}

impl<T: Keepable> InitialField for Persistent<T> {
    type Value = T;

    fn with_initial(initial: fn() -> T) -> Self {
        Self::declared(initial)
    }

    fn as_field(&mut self) -> &mut dyn Field {
        self
    }
}

impl<T> Deref for Persistent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Persistent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Persistent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// As its value, so that an answer may hold it.
impl<T: Serialize> Serialize for Persistent<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}
