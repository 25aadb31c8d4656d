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
use super::value::{LIST, OBJECT};

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
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let page = pinned::Observable::new(json!({ "todos": [{ "done": false }] }))?;
    /// let done = page.cursor().at("todos").at(0).at("done");
    /// assert_eq!(done.get()?, false);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn at(&self, segment: impl Into<Segment>) -> Self {
        Self {
            node: self.node.clone(),
            path: joined(&self.path, segment),
            read_only: self.read_only,
        }
    }

    /// The path from the observable the cursor was made from.
    ///
    /// ```
    /// let page = pinned::Observable::new(())?;
    /// assert_eq!(page.at("todos").at(0).path(), ["todos".into(), 0.into()]);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn path(&self) -> &[Segment] {
        &self.path
    }

    /// A plain copy of what is here. To read without copying, use [`Cursor::with`].
    ///
    /// # Errors
    ///
    /// When nothing is here. So for every method that reads.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "title": "Plans" }))?;
    /// assert_eq!(page.at("title").get()?, "Plans");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
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
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "title": null }))?;
    /// assert!(page.at("title").exists());
    /// assert!(!page.at("text").exists());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn exists(&self) -> bool {
        read::look(&self.node, &self.path, |_, _| Ok(())).is_ok()
    }

    /// How many elements, entries, or (of a string) Unicode scalar values are here.
    ///
    /// # Errors
    ///
    /// When neither a list, an object nor a string is here.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "text": "häh?" }))?;
    /// assert_eq!(page.cursor().len()?, 1);
    /// assert_eq!(page.at("text").len()?, 4);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
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
    ///
    /// ```
    /// let todos = pinned::Observable::new(serde_json::json!([]))?;
    /// assert!(todos.cursor().is_empty()?);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The keys of the object that is here.
    ///
    /// # Errors
    ///
    /// When no object is here.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "title": "Plans", "draft": true }))?;
    /// assert_eq!(page.cursor().keys()?, ["draft", "title"]);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn keys(&self) -> Result<Vec<String>> {
        read::look(&self.node, &self.path, |found, _| {
            let keys = found.keys().ok_or_else(|| found.misfit(&[], OBJECT))?;
            Ok(keys.into_iter().cloned().collect())
        })
    }

    /// Whether the list that is here has an element equal to `item`, or the object here has the key `item`. Equal is what
    /// is equal as JSON, mounts resolved; `1` and `1.0` are one number.
    ///
    /// # Errors
    ///
    /// When neither a list nor an object is here, or `item` cannot stand in a tree.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "tags": ["new"] }))?;
    /// assert!(page.cursor().contains("tags")?);
    /// assert!(page.at("tags").contains("new")?);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn contains(&self, item: impl Into<Tree>) -> Result<bool> {
        let item = item.into().into_value()?;
        read::look(&self.node, &self.path, |found, held| match found.kind() {
            LIST => Ok(found.position(&item, held, &[])?.is_some()),
            OBJECT => Ok(item.as_str().is_some_and(|key| found.has_key(key))),
            _ => Err(found.misfit(&[], "a list or an object")),
        })
    }

    /// The position of the first element equal to `item` in the list that is here.
    ///
    /// # Errors
    ///
    /// When no list is here, it has no such element, or `item` cannot stand in a tree.
    ///
    /// ```
    /// let tags = pinned::Observable::new(serde_json::json!(["new", "hot"]))?;
    /// assert_eq!(tags.cursor().index_of("hot")?, 1);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn index_of(&self, item: impl Into<Tree>) -> Result<usize> {
        let item = item.into().into_value()?;
        read::look(&self.node, &self.path, |found, held| {
            found
                .position(&item, held, &[])?
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
