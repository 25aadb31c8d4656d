//! What a node stores: one shared `Value` wherever nothing is mounted, and containers of our own around the mounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::error::ObservableError;
use super::group::Held;
use super::node::Node;
use super::path::Segment;
use super::value::{self, LIST, OBJECT};

/// A `List` or an `Object` stands exactly where a mount is somewhere below; the rest is `Plain`.
pub(super) enum Content {
    /// Shared with readers; a write while one still reads copies.
    Plain(Arc<Value>),
    List(Vec<Content>),
    Object(BTreeMap<String, Content>),
    Mount(Mount),
}

#[derive(Clone)]
pub(super) struct Mount {
    pub(super) node: Arc<Node>,
    /// Writes that come through the parent are refused.
    pub(super) read_only: bool,
}

/// A place inside a node's content, for reading.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Value(&'a Value),
    Content(&'a Content),
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self::Plain(Arc::new(value))
    }
}

impl Content {
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    pub(super) fn plain(&self) -> Option<&Value> {
        Found::of(self).plain()
    }

    /// A plain copy, with what is mounted resolved.
    pub(super) fn snapshot(&self, held: &Held) -> Value {
        match self {
            Self::Plain(value) => Value::clone(value),
            Self::List(items) => items.iter().map(|item| item.snapshot(held)).collect(),
            Self::Object(entries) => entries
                .iter()
                .map(|(key, item)| (key.clone(), item.snapshot(held)))
                .collect(),
            Self::Mount(mount) => mount.node.state(held).content.snapshot(held),
        }
    }

    /// As [`Content::snapshot`], for content that is in no tree yet: every mount is read under its own lock.
    pub(super) fn resolved(&self) -> Value {
        match self {
            Self::Plain(value) => Value::clone(value),
            Self::List(items) => items.iter().map(Self::resolved).collect(),
            Self::Object(entries) => entries
                .iter()
                .map(|(key, item)| (key.clone(), item.resolved()))
                .collect(),
            Self::Mount(mount) => super::read::snapshot(&mount.node),
        }
    }

    /// As a plain value, without a copy where nothing is mounted.
    pub(super) fn take_value(&mut self, held: &Held) -> Value {
        match self {
            Self::Plain(value) => Arc::unwrap_or_clone(std::mem::take(value)),
            mixed => mixed.snapshot(held),
        }
    }

    /// Follows `path` to its end, to the first plain content or to the first mount, whichever comes first, and says how
    /// many segments that took.
    pub(super) fn approach(&self, path: &[Segment]) -> Result<(&Self, usize), ObservableError> {
        let mut at = self;
        for (used, segment) in path.iter().enumerate() {
            let inner = match (at, segment) {
                (Self::Plain(_) | Self::Mount(_), _) => return Ok((at, used)),
                (Self::List(items), Segment::Index(index)) => items.get(*index),
                (Self::Object(entries), Segment::Key(key)) => entries.get(key),
                _ => None,
            };
            let wrong = || Found::Content(at).child(segment, &path[..used]).err();
            at = match inner {
                Some(inner) => inner,
                None => {
                    return Err(wrong().unwrap_or(ObservableError::NotFound {
                        path: path.to_vec(),
                    }));
                }
            };
        }
        Ok((at, path.len()))
    }

    /// What stands at `path`, a mount as such.
    pub(super) fn at(&self, path: &[Segment]) -> Result<Found<'_>, ObservableError> {
        Found::of(self).descend(path)
    }

    /// Calls `visit` with every mount in this content and its path below `base`.
    pub(super) fn each_mount(
        &self,
        base: &mut Vec<Segment>,
        visit: &mut dyn FnMut(&Mount, &[Segment]),
    ) {
        let mut inside = |segment: Segment, item: &Self, base: &mut Vec<Segment>| {
            base.push(segment);
            item.each_mount(base, visit);
            base.pop();
        };
        match self {
            Self::Plain(_) => {}
            Self::List(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| inside(Segment::Index(index), item, base)),
            Self::Object(entries) => entries
                .iter()
                .filter(|(_, item)| !item.is_plain())
                .for_each(|(key, item)| inside(Segment::Key(key.clone()), item, base)),
            Self::Mount(mount) => visit(mount, base),
        }
    }
}

impl<'a> Found<'a> {
    pub(super) fn descend(self, path: &[Segment]) -> Result<Self, ObservableError> {
        let mut at = self;
        for (used, segment) in path.iter().enumerate() {
            at = at.child(segment, &path[..used])?;
        }
        Ok(at)
    }

    /// One step down. `path` is where `self` is, for the error.
    pub(super) fn child(
        self,
        segment: &Segment,
        path: &[Segment],
    ) -> Result<Self, ObservableError> {
        let wrong = |expected| self.misfit(path, expected);
        let missing = || super::path::joined(path, segment.clone());
        match segment {
            Segment::Key(key) => match self {
                Self::Value(Value::Object(entries)) => entries.get(key).map(Self::Value),
                Self::Content(Content::Object(entries)) => entries.get(key).map(Found::of),
                _ => return Err(wrong(OBJECT)),
            }
            .ok_or_else(|| ObservableError::NotFound { path: missing() }),
            Segment::Index(index) => {
                let (item, len) = match self {
                    Self::Value(Value::Array(items)) => {
                        (items.get(*index).map(Self::Value), items.len())
                    }
                    Self::Content(Content::List(items)) => {
                        (items.get(*index).map(Found::of), items.len())
                    }
                    _ => return Err(wrong(LIST)),
                };
                item.ok_or_else(|| ObservableError::OutOfRange {
                    path: missing(),
                    len,
                })
            }
        }
    }

    pub(super) fn of(content: &'a Content) -> Self {
        match content {
            Content::Plain(value) => Self::Value(value),
            mixed => Self::Content(mixed),
        }
    }

    /// The plain value that stands here, if nothing is mounted in it.
    pub(super) fn plain(self) -> Option<&'a Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Content(Content::Plain(value)) => Some(value),
            Self::Content(_) => None,
        }
    }

    pub(super) fn snapshot(self, held: &Held) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Content(content) => content.snapshot(held),
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Value(found) => value::kind(found),
            Self::Content(Content::Plain(found)) => value::kind(found),
            Self::Content(Content::List(_)) => LIST,
            Self::Content(Content::Object(_)) => OBJECT,
            Self::Content(Content::Mount(_)) => "an observable",
        }
    }

    pub(super) fn misfit(self, path: &[Segment], expected: &'static str) -> ObservableError {
        ObservableError::Type {
            path: path.to_vec(),
            expected,
            found: self.kind(),
        }
    }

    /// The position of the first element that is `wanted`. Fails where no list is; `path` is where that is, for the error.
    pub(super) fn position(
        self,
        wanted: &Value,
        held: &Held,
        path: &[Segment],
    ) -> Result<Option<usize>, ObservableError> {
        match (self.plain(), self) {
            (Some(Value::Array(items)), _) => {
                Ok(items.iter().position(|item| value::same(item, wanted)))
            }
            (_, Self::Content(Content::List(items))) => Ok(items
                .iter()
                .position(|item| Found::of(item).is_same(wanted, held))),
            _ => Err(self.misfit(path, LIST)),
        }
    }

    /// The keys of an object, or `None` for anything else.
    pub(super) fn keys(self) -> Option<Vec<&'a String>> {
        match (self.plain(), self) {
            (Some(Value::Object(entries)), _) => Some(entries.keys().collect()),
            (_, Self::Content(Content::Object(entries))) => Some(entries.keys().collect()),
            _ => None,
        }
    }

    /// How many elements, entries or Unicode scalar values, or `None` where nothing can be counted.
    pub(super) fn len(self) -> Option<usize> {
        match (self.plain(), self) {
            (Some(Value::Array(items)), _) => Some(items.len()),
            (Some(Value::Object(entries)), _) => Some(entries.len()),
            (Some(Value::String(text)), _) => Some(text.chars().count()),
            (_, Self::Content(Content::List(items))) => Some(items.len()),
            (_, Self::Content(Content::Object(entries))) => Some(entries.len()),
            _ => None,
        }
    }

    pub(super) fn has_key(self, key: &str) -> bool {
        match (self.plain(), self) {
            (Some(Value::Object(entries)), _) => entries.contains_key(key),
            (_, Self::Content(Content::Object(entries))) => entries.contains_key(key),
            _ => false,
        }
    }

    /// Whether the value here, with mounts resolved, is `wanted`.
    fn is_same(self, wanted: &Value, held: &Held) -> bool {
        match self.plain() {
            Some(found) => value::same(found, wanted),
            None => value::same(&self.snapshot(held), wanted),
        }
    }
}
