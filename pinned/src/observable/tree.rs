use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::content::{Content, Mount};
use super::cursor::Cursor;
use super::encode;
use super::error::{EncodingError, ObservableError};
use super::node::Node;
use super::path::Segment;
use super::typed::Observable;
use super::value;
use super::view::ObservableView;

/// A value on its way into an observable: JSON in which other observables may stand.
///
/// Every write takes `impl Into<Tree>`: a [`Value`], a string, number, bool or list of them, `&Observable` (which is
/// mounted, not copied), `&ObservableView` (mounted read-only), `&Cursor` (copied from what it reads at that moment), what
/// [`tree!`](super::tree!) builds, and any `Serialize` by [`Tree::encode`]. What cannot stand in a tree (see the
/// [module](super)) is refused by the write, before anything changes.
///
/// ```
/// use pinned::Observable;
/// use pinned::observable::Tree;
/// use serde_json::json;
///
/// let status = Observable::new(json!("draft"))?;
/// let page = Observable::from_tree(Tree::object([
///     ("title", Tree::from("Plans")),
///     ("status", Tree::from(&status)),
/// ]))?;
/// status.set(json!("published"))?;
/// assert_eq!(page.snapshot(), json!({ "title": "Plans", "status": "published" }));
/// # Ok::<(), pinned::observable::ObservableError>(())
/// ```
pub struct Tree(Part);

enum Part {
    Plain(Value),
    List(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
    Mount(Mount),
    /// Refused where it was made; the write that gets it says so.
    Refused(ObservableError),
}

impl Tree {
    /// A list of what converts into trees.
    ///
    /// ```
    /// use pinned::observable::{Observable, Tree};
    ///
    /// let squares = Observable::from_tree(Tree::list((1..4).map(|n| n * n)))?;
    /// assert_eq!(squares.snapshot(), serde_json::json!([1, 4, 9]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn list<I>(items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Tree>,
    {
        Self(Part::List(items.into_iter().map(Into::into).collect()))
    }

    /// An object. Of two entries with one key the later stands.
    ///
    /// ```
    /// use pinned::observable::{Observable, Tree};
    ///
    /// let sizes = Observable::from_tree(Tree::object(["a", "bb"].map(|word| (word, word.len()))))?;
    /// assert_eq!(sizes.snapshot(), serde_json::json!({ "a": 1, "bb": 2 }));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn object<I, K, V>(entries: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<Tree>,
    {
        let entries = entries.into_iter();
        Self(Part::Object(
            entries
                .map(|(key, item)| (key.into(), item.into()))
                .collect(),
        ))
    }

    /// What `value` serialises to. Unlike `serde_json::to_value` it refuses NaN, map keys that are not strings, and bytes,
    /// and observables in fields of `value` are mounted, not copied (except under `#[serde(flatten)]` and in internally
    /// tagged enums, where serde shows only their values).
    ///
    /// ```
    /// use pinned::Observable;
    /// use pinned::observable::Tree;
    /// use serde_json::json;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Todo { title: String, done: bool }
    ///
    /// let todos = Observable::new(json!([]))?;
    /// todos.cursor().push(Tree::encode(&Todo { title: "water".into(), done: false }))?;
    /// assert_eq!(todos.snapshot(), json!([{ "title": "water", "done": false }]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn encode<S: Serialize + ?Sized>(value: &S) -> Self {
        encode::encode(value).unwrap_or_else(Self::refused)
    }

    pub(super) fn refused(error: ObservableError) -> Self {
        Self(Part::Refused(error))
    }

    pub(super) fn mount(node: Arc<Node>, read_only: bool) -> Self {
        Self(Part::Mount(Mount { node, read_only }))
    }

    /// The text, if that is all it is.
    pub(super) fn into_text(self) -> Option<String> {
        match self.0 {
            Part::Plain(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The entries of an object.
    pub(super) fn into_entries(self) -> Result<Vec<(String, Tree)>, ObservableError> {
        match self.0 {
            Part::Object(entries) => Ok(entries.into_iter().collect()),
            Part::Plain(Value::Object(entries)) => Ok(entries
                .into_iter()
                .map(|(key, item)| (key, item.into()))
                .collect()),
            Part::Refused(error) => Err(error),
            other => Err(ObservableError::Type {
                path: Vec::new(),
                expected: value::OBJECT,
                found: match other {
                    Part::Plain(found) => value::kind(&found),
                    Part::List(_) => value::LIST,
                    _ => "an observable",
                },
            }),
        }
    }

    /// As a plain value, checked all through, with observables resolved.
    pub(super) fn into_value(self) -> Result<Value, ObservableError> {
        match self.into_content()? {
            Content::Plain(value) => Ok(Arc::unwrap_or_clone(value)),
            mixed => Ok(mixed.resolved()),
        }
    }

    /// As content, checked all through.
    pub(super) fn into_content(self) -> Result<Content, ObservableError> {
        let tree = match self.0 {
            Part::Plain(value) => {
                value::check(&value)?;
                return Ok(value.into());
            }
            Part::Mount(mount) => return Ok(Content::Mount(mount)),
            Part::Refused(error) => return Err(error),
            Part::List(items) => Content::List(
                items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| item.into_content().map_err(|e| e.within(&[index.into()])))
                    .collect::<Result<_, _>>()?,
            ),
            Part::Object(entries) => Content::Object(
                entries
                    .into_iter()
                    .map(|(key, item)| match item.into_content() {
                        Ok(item) => Ok((key, item)),
                        Err(error) => Err(error.within(&[Segment::Key(key)])),
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        let mut tree = tree;
        tree.collapse(&[]);
        Ok(tree)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tree").finish_non_exhaustive()
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self(Part::Plain(value))
    }
}

impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        Self(Part::Plain(value.clone()))
    }
}

macro_rules! plain {
    ($($from:ty),*) => {$(
        impl From<$from> for Tree {
            fn from(value: $from) -> Self {
                Self(Part::Plain(Value::from(value)))
            }
        }
    )*};
}

plain!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, &str, String, (), Map<String, Value>);

impl From<&String> for Tree {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<f64> for Tree {
    fn from(value: f64) -> Self {
        match serde_json::Number::from_f64(value) {
            Some(number) => Self(Part::Plain(Value::Number(number))),
            None => Self::refused(ObservableError::Encoding {
                path: Vec::new(),
                reason: EncodingError::NotFinite,
            }),
        }
    }
}

impl From<f32> for Tree {
    fn from(value: f32) -> Self {
        Self::from(f64::from(value))
    }
}

impl<T: Into<Tree>> From<Option<T>> for Tree {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(Part::Plain(Value::Null)), Into::into)
    }
}

impl<T: Into<Tree>> From<Vec<T>> for Tree {
    fn from(items: Vec<T>) -> Self {
        Self::list(items)
    }
}

impl<T: Into<Tree>, const N: usize> From<[T; N]> for Tree {
    fn from(items: [T; N]) -> Self {
        Self::list(items)
    }
}

impl<T: Into<Tree>> From<BTreeMap<String, T>> for Tree {
    fn from(entries: BTreeMap<String, T>) -> Self {
        Self::object(entries)
    }
}

impl<T: Into<Tree>> From<HashMap<String, T>> for Tree {
    fn from(entries: HashMap<String, T>) -> Self {
        Self::object(entries)
    }
}

impl<T> From<&Observable<T>> for Tree {
    /// Mounts the observable: it stays live where it is put.
    fn from(observable: &Observable<T>) -> Self {
        Self::mount(observable.node().clone(), false)
    }
}

impl<T> From<Observable<T>> for Tree {
    fn from(observable: Observable<T>) -> Self {
        Self::from(&observable)
    }
}

impl<T> From<&ObservableView<T>> for Tree {
    /// Mounts the observable for reading: writes through the parent are refused.
    fn from(view: &ObservableView<T>) -> Self {
        Self::mount(view.node().clone(), true)
    }
}

impl<T> From<ObservableView<T>> for Tree {
    fn from(view: ObservableView<T>) -> Self {
        Self::from(&view)
    }
}

impl From<&Cursor> for Tree {
    /// Copies what the cursor reads now.
    fn from(cursor: &Cursor) -> Self {
        cursor.get().map_or_else(Self::refused, Self::from)
    }
}

impl From<Cursor> for Tree {
    fn from(cursor: Cursor) -> Self {
        Self::from(&cursor)
    }
}
