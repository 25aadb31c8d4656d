//! A value of a document, with the way to it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Malformed;

/// A value of a document, with the way to it.
#[derive(Debug)]
pub(in crate::passport) struct Member<'a> {
    path: String,
    value: &'a Value,
}

/// The members of an object.
#[derive(Debug)]
pub(in crate::passport) struct Fields<'a> {
    path: String,
    members: &'a Map<String, Value>,
}

impl<'a> Member<'a> {
    /// A value that `path` leads to.
    pub(in crate::passport) fn new(path: impl Into<String>, value: &'a Value) -> Self {
        Self {
            path: path.into(),
            value,
        }
    }

    /// The same value, one step further in: `path` led to what it is a member of.
    pub(in crate::passport) fn with_step(mut self, name: &str) -> Self {
        push_step(&mut self.path, name);
        self
    }

    pub(in crate::passport) fn path(&self) -> &str {
        &self.path
    }

    pub(in crate::passport) fn value(&self) -> &'a Value {
        self.value
    }

    /// The error of a value that is not what was expected here.
    pub(in crate::passport) fn fail(&self, expected: impl ToString) -> Malformed {
        Malformed {
            path: self.path.clone(),
            expected: format!("expected {}", expected.to_string()),
        }
    }

    /// The error of a value that is of the right kind, and wrong for a reason of its own.
    pub(in crate::passport) fn refuse(&self, reason: impl ToString) -> Malformed {
        Malformed {
            path: self.path.clone(),
            expected: reason.to_string(),
        }
    }

    fn wrong_kind(&self, expected: &str) -> Malformed {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.fail(format_args!("{expected}, found {found}"))
    }

    /// An object with no other members than those `known`.
    pub(in crate::passport) fn object(&self, known: &[&str]) -> Result<Fields<'a>, Malformed> {
        let fields = self.any_object()?;
        match fields
            .members
            .keys()
            .find(|name| !known.contains(&name.as_str()))
        {
            Some(unknown) => Err(Malformed {
                path: fields.path_of(unknown),
                expected: format!("unknown field; known are {}", known.join(", ")),
            }),
            None => Ok(fields),
        }
    }

    /// An object with any members.
    pub(in crate::passport) fn any_object(&self) -> Result<Fields<'a>, Malformed> {
        match self.value {
            Value::Object(members) => Ok(Fields {
                path: self.path.clone(),
                members,
            }),
            _ => Err(self.wrong_kind("an object")),
        }
    }

    /// The items of an array.
    pub(in crate::passport) fn items(&self) -> Result<Vec<Self>, Malformed> {
        match self.value {
            Value::Array(items) => Ok((0..)
                .zip(items)
                .map(|(index, value)| Self::new(format!("{}[{index}]", self.path), value))
                .collect::<Vec<_>>()),
            _ => Err(self.wrong_kind("an array")),
        }
    }

    /// A string that is not empty.
    pub(in crate::passport) fn text(&self) -> Result<&'a str, Malformed> {
        match self.value {
            Value::String(text) if text.is_empty() => Err(self.fail("a string that is not empty")),
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_kind("a string")),
        }
    }

    /// One string or an array of at least one, none of them empty.
    pub(in crate::passport) fn texts(&self) -> Result<Vec<&'a str>, Malformed> {
        match self.value {
            Value::Array(items) if items.is_empty() => {
                Err(self.fail("a string, or an array of at least one"))
            }
            Value::Array(_) => self.items()?.iter().map(Self::text).collect(),
            Value::String(_) => Ok(vec![self.text()?]),
            _ => Err(self.wrong_kind("a string or an array of strings")),
        }
    }
}

impl<'a> Fields<'a> {
    /// A member that has to be there.
    pub(in crate::passport) fn required(&self, name: &str) -> Result<Member<'a>, Malformed> {
        self.optional(name).ok_or_else(|| Malformed {
            path: self.path_of(name),
            expected: "required, and missing".to_owned(),
        })
    }

    /// A member that may be there.
    pub(in crate::passport) fn optional(&self, name: &str) -> Option<Member<'a>> {
        let value = self.members.get(name)?;
        Some(Member::new(self.path_of(name), value))
    }

    /// All members, by name.
    pub(in crate::passport) fn iter(&self) -> impl Iterator<Item = (&'a str, Member<'a>)> {
        self.members
            .iter()
            .map(|(name, value)| (name.as_str(), Member::new(self.path_of(name), value)))
    }

    /// The members themselves.
    pub(in crate::passport) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    fn path_of(&self, name: &str) -> String {
        let mut path = self.path.clone();
        push_step(&mut path, name);
        path
    }
}

/// Appends the step to a member: `.name`, or `["/name"]` where that would not be read as one.
fn push_step(path: &mut String, name: &str) {
    let is_plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_plain {
        // Escaped, so that a message stays one line.
        let _ = write!(path, "[{name:?}]");
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}
