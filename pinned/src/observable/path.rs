use std::fmt;

use serde::{Deserialize, Serialize};

/// One step of a path: a key of an object, or a position in a list.
///
/// Serialised as a plain string or a plain number, so a path is a JSON array such as `["todos", 0, "done"]`.
///
/// ```
/// use pinned::observable::Segment;
///
/// let path: Vec<Segment> = vec!["todos".into(), 0.into()];
/// assert_eq!(serde_json::to_string(&path).unwrap(), r#"["todos",0]"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Segment {
    /// A key of an object.
    Key(String),
    /// A position in a list, from 0. In a text `add`: an offset in Unicode scalar values.
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for Segment {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<&String> for Segment {
    fn from(key: &String) -> Self {
        Self::Key(key.clone())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// `$`, `$.todos[0].done`, `$["two words"]`: what error messages show.
pub(super) struct Shown<'a>(pub(super) &'a [Segment]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("$")?;
        for segment in self.0 {
            match segment {
                Segment::Key(key) if is_word(key) => write!(out, ".{key}")?,
                Segment::Key(key) => write!(out, "[{key:?}]")?,
                Segment::Index(index) => write!(out, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_word(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `base` followed by `segment`.
pub(super) fn joined(base: &[Segment], segment: impl Into<Segment>) -> Vec<Segment> {
    let mut path = Vec::with_capacity(base.len() + 1);
    path.extend_from_slice(base);
    path.push(segment.into());
    path
}

#[cfg(test)]
mod tests {
    use super::{Segment, Shown};

    #[test]
    fn a_path_is_shown_as_one_would_write_it() {
        let path: Vec<Segment> = vec!["todos".into(), 3.into(), "two words".into()];
        assert_eq!(Shown(&path).to_string(), r#"$.todos[3]["two words"]"#);
        assert_eq!(Shown(&[]).to_string(), "$");
    }
}
