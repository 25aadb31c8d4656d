//! The JSON of a queue in its tray's row (T2.4).
//!
//! Absent when empty; a list when nothing is taken; `{"taken":[..],"items":[..]}` while something is. A long queue adds
//! `"chunks":[from,to]` and `"tail":[..]`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::BoxError;
use crate::tray::entries::{EntryText, compact};

/// A queue's entry as it was read.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) taken: Vec<EntryText>,
    pub(super) items: Vec<EntryText>,
    pub(super) chunks: Option<(u64, u64)>,
    pub(super) tail: Vec<EntryText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    #[serde(default)]
    taken: Vec<Box<RawValue>>,
    #[serde(default)]
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    chunks: Option<(u64, u64)>,
    #[serde(default)]
    tail: Vec<Box<RawValue>>,
}

impl Stored {
    pub(super) fn parse(text: &RawValue) -> Result<Self, BoxError> {
        let text = text.get().trim_start();
        if text.starts_with('[') {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text)?;
            return Ok(Self {
                items: texts(items),
                ..Self::default()
            });
        }
        if !text.starts_with('{') {
            return Err("a queue is a list, or an object with `taken` and `items`".into());
        }
        let parts: Parts = serde_json::from_str(text)?;
        if let Some((from, to)) = parts.chunks
            // Numbers go on from `to`, and never come to the end of their type.
            && (from >= to || to > u64::MAX / 2)
        {
            return Err("`chunks` names no chunk".into());
        }
        if parts.chunks.is_none() && !parts.tail.is_empty() {
            return Err("`tail` stands without `chunks`".into());
        }
        Ok(Self {
            taken: texts(parts.taken),
            items: texts(parts.items),
            chunks: parts.chunks,
            tail: texts(parts.tail),
        })
    }
}

pub(super) fn texts(values: Vec<Box<RawValue>>) -> Vec<EntryText> {
    values.iter().map(|value| compact(value.get())).collect()
}

/// Writes the entry; `None` when there is nothing to write.
pub(super) fn render<'a>(
    taken: impl ExactSizeIterator<Item = &'a EntryText>,
    head: impl ExactSizeIterator<Item = &'a EntryText>,
    chunks: Option<(u64, u64)>,
    tail: impl ExactSizeIterator<Item = &'a EntryText>,
) -> Option<EntryText> {
    if taken.len() == 0 && chunks.is_none() {
        return (head.len() > 0).then(|| list(head).into());
    }
    let mut parts = Vec::new();
    if taken.len() > 0 {
        parts.push(format!("\"taken\":{}", list(taken)));
    }
    if head.len() > 0 {
        parts.push(format!("\"items\":{}", list(head)));
    }
    if let Some((from, to)) = chunks {
        parts.push(format!("\"chunks\":[{from},{to}]"));
    }
    if tail.len() > 0 {
        parts.push(format!("\"tail\":{}", list(tail)));
    }
    Some(format!("{{{}}}", parts.join(",")).into())
}

/// `[a,b,c]`
pub(super) fn list<'a>(texts: impl Iterator<Item = &'a EntryText>) -> String {
    let mut out = String::from("[");
    for text in texts {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(text);
    }
    out.push(']');
    out
}
