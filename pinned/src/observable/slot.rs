//! Containers inside a node's content, for writing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::content::Content;
use super::error::ObservableError;
use super::group::Held;
use super::path::Segment;
use super::value::{LIST, OBJECT};

pub(super) enum ListMut<'a> {
    Plain(&'a mut Vec<Value>),
    Mixed(&'a mut Vec<Content>),
}

pub(super) enum ObjectMut<'a> {
    Plain(&'a mut Map<String, Value>),
    Mixed(&'a mut BTreeMap<String, Content>),
}

enum Place<'a> {
    Value(&'a mut Value),
    Content(&'a mut Content),
}

impl Content {
    /// The list at `path`, able to take mounts if `mixed`.
    pub(super) fn list_mut(
        &mut self,
        path: &[Segment],
        mixed: bool,
    ) -> Result<ListMut<'_>, ObservableError> {
        let found = self.at(path)?;
        if found.kind() != LIST {
            return Err(found.misfit(path, LIST));
        }
        match self.place(path, mixed) {
            Some(Place::Value(Value::Array(items))) => Ok(ListMut::Plain(items)),
            Some(Place::Content(Self::List(items))) => Ok(ListMut::Mixed(items)),
            _ => Err(ObservableError::NotFound {
                path: path.to_vec(),
            }),
        }
    }

    /// The object at `path`, able to take mounts if `mixed`.
    pub(super) fn object_mut(
        &mut self,
        path: &[Segment],
        mixed: bool,
    ) -> Result<ObjectMut<'_>, ObservableError> {
        let found = self.at(path)?;
        if found.kind() != OBJECT {
            return Err(found.misfit(path, OBJECT));
        }
        match self.place(path, mixed) {
            Some(Place::Value(Value::Object(entries))) => Ok(ObjectMut::Plain(entries)),
            Some(Place::Content(Self::Object(entries))) => Ok(ObjectMut::Mixed(entries)),
            _ => Err(ObservableError::NotFound {
                path: path.to_vec(),
            }),
        }
    }

    /// The text at `path`.
    pub(super) fn text_mut(&mut self, path: &[Segment]) -> Result<&mut String, ObservableError> {
        let found = self.at(path)?;
        if !found.plain().is_some_and(Value::is_string) {
            return Err(found.misfit(path, "a string"));
        }
        match self.place(path, false) {
            Some(Place::Value(Value::String(text))) => Ok(text),
            _ => Err(ObservableError::NotFound {
                path: path.to_vec(),
            }),
        }
    }

    fn place(&mut self, path: &[Segment], mixed: bool) -> Option<Place<'_>> {
        if mixed {
            self.expand();
        }
        match (self, path.split_first()) {
            (Self::Plain(value), _) => {
                let mut at = Arc::make_mut(value);
                for segment in path {
                    at = match segment {
                        Segment::Key(key) => at.get_mut(key)?,
                        Segment::Index(index) => at.get_mut(index)?,
                    };
                }
                Some(Place::Value(at))
            }
            (Self::List(items), Some((Segment::Index(index), rest))) => {
                items.get_mut(*index)?.place(rest, mixed)
            }
            (Self::Object(entries), Some((Segment::Key(key), rest))) => {
                entries.get_mut(key)?.place(rest, mixed)
            }
            (content, None) => Some(Place::Content(content)),
            _ => None,
        }
    }

    /// Makes a plain container one that can hold mounts.
    fn expand(&mut self) {
        let Self::Plain(value) = self else { return };
        if !value.is_array() && !value.is_object() {
            return;
        }
        *self = match Arc::unwrap_or_clone(std::mem::take(value)) {
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => Self::Object(
                entries
                    .into_iter()
                    .map(|(key, item)| (key, Self::from(item)))
                    .collect(),
            ),
            scalar => Self::from(scalar),
        };
    }

    /// Makes plain again, from the inside out, what along `path` holds no mounts any more.
    pub(super) fn collapse(&mut self, path: &[Segment]) {
        if let Some((segment, rest)) = path.split_first() {
            let inner = match (&mut *self, segment) {
                (Self::List(items), Segment::Index(index)) => items.get_mut(*index),
                (Self::Object(entries), Segment::Key(key)) => entries.get_mut(key),
                _ => None,
            };
            if let Some(inner) = inner {
                inner.collapse(rest);
            }
        }
        let plain = |content: Content| match content {
            Self::Plain(value) => Some(Arc::unwrap_or_clone(value)),
            _ => None,
        };
        match self {
            Self::List(items) if items.iter().all(Self::is_plain) => {
                let items = std::mem::take(items).into_iter().filter_map(plain);
                *self = Self::from(Value::Array(items.collect()));
            }
            Self::Object(entries) if entries.values().all(Self::is_plain) => {
                let entries = std::mem::take(entries)
                    .into_iter()
                    .filter_map(|(key, item)| Some((key, plain(item)?)));
                *self = Self::from(Value::Object(entries.collect()));
            }
            _ => {}
        }
    }
}

impl ListMut<'_> {
    /// Inserts before `index`, which is at most the length.
    pub(super) fn insert(&mut self, index: usize, mut item: Content, held: &Held) {
        match self {
            Self::Plain(items) => items.insert(index, item.take_value(held)),
            Self::Mixed(items) => items.insert(index, item),
        }
    }

    /// Takes out the element at `index`, if there is one.
    pub(super) fn remove(&mut self, index: usize) -> Option<Content> {
        match self {
            Self::Plain(items) => (index < items.len()).then(|| items.remove(index).into()),
            Self::Mixed(items) => (index < items.len()).then(|| items.remove(index)),
        }
    }

    /// Puts `item` in the place of the element at `index`, if there is one, and returns what was there.
    pub(super) fn replace(
        &mut self,
        index: usize,
        mut item: Content,
        held: &Held,
    ) -> Option<Content> {
        match self {
            Self::Plain(items) => {
                let slot = items.get_mut(index)?;
                Some(std::mem::replace(slot, item.take_value(held)).into())
            }
            Self::Mixed(items) => Some(std::mem::replace(items.get_mut(index)?, item)),
        }
    }
}

impl ObjectMut<'_> {
    pub(super) fn insert(
        &mut self,
        key: String,
        mut item: Content,
        held: &Held,
    ) -> Option<Content> {
        match self {
            Self::Plain(entries) => entries
                .insert(key, item.take_value(held))
                .map(Content::from),
            Self::Mixed(entries) => entries.insert(key, item),
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Content> {
        match self {
            Self::Plain(entries) => entries.remove(key).map(Content::from),
            Self::Mixed(entries) => entries.remove(key),
        }
    }
}
