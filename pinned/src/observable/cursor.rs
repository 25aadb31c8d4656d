use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ObservableError;
use super::node::Node;
use super::path::{Segment, Shown, joined};
use super::read;
use super::tree::Tree;
use super::value::LIST;

pub(super) type Result<T> = std::result::Result<T, ObservableError>;

/// A path into an observable, for reading and writing what stands there.
///
/// A cursor resolves its path at each use, so it follows whatever sits there by then, through mounts as well. It is cheap
/// to make, to clone and to keep, and keeps its observable alive.
///
/// ```
/// use pinned::Observable;
/// use serde_json::json;
///
/// let page = Observable::new(json!({ "todos": ["water the plants"] }))?;
/// let todos = page.at("todos");
/// todos.push("feed the cat")?;
/// todos.insert(0, "get up")?;
/// assert_eq!(todos.get()?, json!(["get up", "water the plants", "feed the cat"]));
/// assert_eq!(todos.at(2).get()?, "feed the cat");
/// # Ok::<(), pinned::observable::ObservableError>(())
/// ```
#[derive(Clone)]
pub struct Cursor {
    pub(super) node: Arc<Node>,
    pub(super) path: Vec<Segment>,
    pub(super) read_only: bool,
}

impl Cursor {
    pub(super) fn new(node: Arc<Node>, read_only: bool) -> Self {
        Self {
            node,
            path: Vec::new(),
            read_only,
        }
    }

    /// The cursor of the element under a key or at a position, whether there is one yet or not.
    pub fn at(&self, segment: impl Into<Segment>) -> Self {
        Self {
            node: self.node.clone(),
            path: joined(&self.path, segment),
            read_only: self.read_only,
        }
    }

    /// The path from the observable the cursor was made from.
    pub fn path(&self) -> &[Segment] {
        &self.path
    }

    /// A plain copy of what is here. To read without copying, use [`Cursor::with`].
    ///
    /// # Errors
    ///
    /// When nothing is here. So for every method that reads.
    pub fn get(&self) -> Result<Value> {
        self.with(Value::clone)
    }

    /// What is here, as a `U`.
    ///
    /// # Errors
    ///
    /// When nothing is here or it does not read as a `U`.
    ///
    /// ```
    /// let counts = pinned::Observable::new(serde_json::json!({ "a": 1 }))?;
    /// assert_eq!(counts.at("a").get_as::<u32>()?, 1);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn get_as<U: DeserializeOwned>(&self) -> Result<U> {
        self.with(|value| U::deserialize(value))?
            .map_err(|source| ObservableError::Deserialize {
                path: self.path.clone(),
                source,
            })
    }

    /// Lends what is here to `read`. Nothing is copied where no observable is mounted in it; where one is, `read` gets a
    /// snapshot. No lock is held meanwhile: `read` may do anything, and sees the value as it was when it started.
    ///
    /// # Errors
    ///
    /// When nothing is here.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let log = pinned::Observable::new(json!({ "lines": ["a", "b", "c"] }))?;
    /// let last = log.at("lines").with(|lines| lines[2].clone())?;
    /// assert_eq!(last, "c");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn with<R>(&self, read: impl FnOnce(&Value) -> R) -> Result<R> {
        read::with(&self.node, &self.path, read)
    }

    /// Whether something is here.
    pub fn exists(&self) -> bool {
        read::look(&self.node, &self.path, |_, _| Ok(())).is_ok()
    }

    /// How many elements, entries, or (of a string) Unicode scalar values are here.
    ///
    /// # Errors
    ///
    /// When neither a list, an object nor a string is here.
    pub fn len(&self) -> Result<usize> {
        read::look(&self.node, &self.path, |found, _| {
            let wrong = || found.misfit(&[], "a list, an object or a string");
            found.len().ok_or_else(wrong)
        })
    }

    /// Whether [`Cursor::len`] is 0.
    ///
    /// # Errors
    ///
    /// As [`Cursor::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The keys of the object that is here.
    ///
    /// # Errors
    ///
    /// When no object is here.
    pub fn keys(&self) -> Result<Vec<String>> {
        read::look(&self.node, &self.path, |found, _| {
            let keys = found
                .keys()
                .ok_or_else(|| found.misfit(&[], super::value::OBJECT))?;
            Ok(keys.into_iter().cloned().collect())
        })
    }

    /// Whether the list that is here has an element equal to `item`, or the object here has the key `item`. Equal is what
    /// is equal as JSON, mounts resolved; `1` and `1.0` are one number.
    ///
    /// # Errors
    ///
    /// When neither a list nor an object is here, or `item` cannot stand in a tree.
    pub fn contains(&self, item: impl Into<Tree>) -> Result<bool> {
        let item = item.into().into_value()?;
        read::look(&self.node, &self.path, |found, held| {
            if let Some(items) = found.items() {
                return Ok(items.iter().any(|found| found.is_same(&item, held)));
            }
            match found.keys() {
                Some(_) => Ok(item.as_str().is_some_and(|key| found.has_key(key))),
                None => Err(found.misfit(&[], "a list or an object")),
            }
        })
    }

    /// The position of the first element equal to `item` in the list that is here.
    ///
    /// # Errors
    ///
    /// When no list is here, it has no such element, or `item` cannot stand in a tree.
    pub fn index_of(&self, item: impl Into<Tree>) -> Result<usize> {
        let item = item.into().into_value()?;
        read::look(&self.node, &self.path, |found, held| {
            let items = found.items().ok_or_else(|| found.misfit(&[], LIST))?;
            items
                .iter()
                .position(|found| found.is_same(&item, held))
                .ok_or(ObservableError::NotFound { path: Vec::new() })
        })
    }
}

impl Serialize for Cursor {
    /// As what is here.
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        let value = self.get().map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cursor")
            .field("path", &format_args!("{}", Shown(&self.path)))
            .finish_non_exhaustive()
    }
}
