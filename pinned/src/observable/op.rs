use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::ObservableError;
use super::path::Segment;
use super::value::kind;

/// What an [`Op`] does at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpKind {
    /// The value is put at the path, over what is there or, in an object, as a new key.
    Replace,
    /// The value is inserted: before a position of a list, or into a string at an offset.
    Add,
    /// What is at the path is taken out; later elements of a list move up.
    Remove,
}

/// One change of an observable, as its subscribers get it: plain data that can be sent.
///
/// | kind | path ends in | the receiver |
/// |---|---|---|
/// | `replace` | nothing, a key, or an existing position | puts the value there |
/// | `add` | a position of a list, up to its length | inserts the value before it |
/// | `add` | an offset into a string, in Unicode scalar values | inserts the text there (observables only append) |
/// | `remove` | a key or a position | takes the element out |
///
/// A browser counts UTF-16 units: convert the offset of a text `add` there, or append, which is what every such op does.
///
/// ```
/// use pinned::observable::Op;
/// use serde_json::json;
///
/// let op = Op::add(["todos".into(), 0.into()], json!("water the plants"));
/// let sent = serde_json::to_value(&op).unwrap();
/// assert_eq!(sent, json!({ "kind": "add", "path": ["todos", 0], "value": "water the plants" }));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// What is done.
    pub kind: OpKind,
    /// Where, from the observable that was subscribed to.
    pub path: Vec<Segment>,
    /// The new value, a snapshot; `None` in a `remove`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub value: Option<Value>,
}

/// A value that is there and null is `Some(Null)`, not `None`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Op {
    /// A `replace` of what is at `path`.
    pub fn replace(path: impl Into<Vec<Segment>>, value: impl Into<Value>) -> Self {
        Self {
            kind: OpKind::Replace,
            path: path.into(),
            value: Some(value.into()),
        }
    }

    /// An `add` before `path`.
    pub fn add(path: impl Into<Vec<Segment>>, value: impl Into<Value>) -> Self {
        Self {
            kind: OpKind::Add,
            path: path.into(),
            value: Some(value.into()),
        }
    }

    /// A `remove` of what is at `path`.
    ///
    /// ```
    /// use pinned::observable::{Op, OpKind};
    ///
    /// let op = Op::remove(["todos".into(), 0.into()]);
    /// assert_eq!((op.kind, op.value), (OpKind::Remove, None));
    /// ```
    pub fn remove(path: impl Into<Vec<Segment>>) -> Self {
        Self {
            kind: OpKind::Remove,
            path: path.into(),
            value: None,
        }
    }

    /// Does to `mirror` what was done to the observable: how a receiver in Rust keeps its copy.
    ///
    /// ```
    /// use pinned::observable::Op;
    /// use serde_json::json;
    ///
    /// let mut mirror = json!({ "text": "Hel" });
    /// Op::add(["text".into(), 3.into()], "lo").apply(&mut mirror)?;
    /// assert_eq!(mirror, json!({ "text": "Hello" }));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the path does not lead anywhere in `mirror`, which then was not the value the op was made on. It is unchanged.
    pub fn apply(&self, mirror: &mut Value) -> Result<(), ObservableError> {
        let missing = || ObservableError::NotFound {
            path: self.path.clone(),
        };
        let misfit = |expected, found: &Value| ObservableError::Type {
            path: self.path.clone(),
            expected,
            found: kind(found),
        };
        let value = self.value.clone();
        let Some((last, outer)) = self.path.split_last() else {
            return match (self.kind, value) {
                (OpKind::Replace, Some(value)) => {
                    *mirror = value;
                    Ok(())
                }
                _ => Err(misfit("a replace of the whole", mirror)),
            };
        };
        let target = outer
            .iter()
            .try_fold(mirror, |at, segment| match segment {
                Segment::Key(key) => at.get_mut(key),
                Segment::Index(index) => at.get_mut(index),
            })
            .ok_or_else(missing)?;
        match (self.kind, target, last, value) {
            (OpKind::Replace, Value::Object(entries), Segment::Key(key), Some(value)) => {
                entries.insert(key.clone(), value);
            }
            (OpKind::Replace, Value::Array(items), Segment::Index(index), Some(value)) => {
                *items.get_mut(*index).ok_or_else(missing)? = value;
            }
            (OpKind::Add, Value::Array(items), Segment::Index(index), Some(value))
                if *index <= items.len() =>
            {
                items.insert(*index, value);
            }
            (
                OpKind::Add,
                Value::String(text),
                Segment::Index(offset),
                Some(Value::String(more)),
            ) => {
                let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
                let at = ends.clone().nth(*offset).ok_or_else(missing)?;
                text.insert_str(at, &more);
            }
            (OpKind::Remove, Value::Object(entries), Segment::Key(key), None) => {
                entries.remove(key).ok_or_else(missing)?;
            }
            (OpKind::Remove, Value::Array(items), Segment::Index(index), None)
                if *index < items.len() =>
            {
                items.remove(*index);
            }
            (_, found, ..) => return Err(misfit("what the op was made on", found)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Op;

    #[test]
    fn a_null_that_replaces_is_not_lost_on_the_way() {
        // O2.1
        for op in [
            Op::replace(["a".into()], json!(null)),
            Op::remove(["a".into()]),
        ] {
            let sent = serde_json::to_string(&op).unwrap();
            assert_eq!(serde_json::from_str::<Op>(&sent).unwrap(), op);
        }
    }

    #[test]
    fn text_offsets_count_scalar_values() {
        // O2.10
        let mut mirror = json!(["äö"]);
        Op::add([0.into(), 2.into()], "ü")
            .apply(&mut mirror)
            .unwrap();
        assert_eq!(mirror, json!(["äöü"]));
        assert!(
            Op::add([0.into(), 4.into()], "x")
                .apply(&mut mirror)
                .is_err()
        );
        assert_eq!(mirror, json!(["äöü"]));
    }
}
