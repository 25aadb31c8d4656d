use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::cursor::Cursor;
use super::encode;
use super::error::ObservableError;
use super::node::Node;
use super::path::Segment;
use super::tree::Tree;
use super::view::ObservableView;

/// A JSON value that tells its subscribers about every change; see the [module](super).
///
/// This is a cheap handle: clones are the same observable. `T` is how [`get`](ObservableView::get) and [`set`](Self::set) see
/// the whole value; cursors write any part of it as JSON.
///
/// All that reads is in [`ObservableView`], to which this dereferences.
///
/// ```
/// use serde_json::json;
/// use pinned::Observable;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Page { title: String, todos: Vec<String> }
///
/// let page = Observable::new(Page { title: "Plans".into(), todos: vec![] })?;
/// page.at("todos").push("water the plants")?;
/// assert_eq!(page.get()?.todos, ["water the plants"]);
/// # Ok::<(), pinned::observable::ObservableError>(())
/// ```
pub struct Observable<T = Value> {
    view: ObservableView<T>,
}

impl Observable {
    /// An observable of JSON in which other observables may stand.
    ///
    /// # Errors
    ///
    /// As [`Cursor::set`] of a whole value.
    ///
    /// ```
    /// use pinned::observable::{Observable, tree};
    /// use serde_json::json;
    ///
    /// let cart = Observable::new(json!([]))?;
    /// let page = Observable::from_tree(tree!({ "title": "Shop", "cart": &cart }))?;
    /// cart.cursor().push("tea")?;
    /// assert_eq!(page.at("cart").at(0).get()?, "tea");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn from_tree(tree: impl Into<Tree>) -> Result<Self, ObservableError> {
        build(tree.into())
    }

    /// The same observable, its whole value seen as a `T`. Whether it is one shows when it is read.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let counts = pinned::Observable::new(json!([1, 2]))?.typed::<Vec<u32>>();
    /// assert_eq!(counts.get()?, [1, 2]);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn typed<T>(&self) -> Observable<T> {
        Observable::of(self.node().clone())
    }
}

impl<T> Observable<T> {
    fn of(node: Arc<Node>) -> Self {
        let view = ObservableView::new(node);
        Self { view }
    }

    /// An observable of `value`. Observables in fields of `value` are mounted, as [`Tree::encode`] says.
    ///
    /// # Errors
    ///
    /// As [`Cursor::set`] of a whole value.
    ///
    /// ```
    /// assert!(pinned::Observable::new(1.5).is_ok());
    /// assert!(pinned::Observable::new(f64::NAN).is_err());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn new(value: T) -> Result<Self, ObservableError>
    where
        T: Serialize,
    {
        build(Tree::encode(&value))
    }

    /// Replaces the whole value. Emits `replace` with an empty path, also for an equal value.
    ///
    /// # Errors
    ///
    /// As [`Cursor::set`] of a whole value.
    ///
    /// # Panics
    ///
    /// As [every write](Cursor#panics): with the panic of a subscriber.
    ///
    /// ```
    /// let tags = pinned::Observable::new(vec!["new"])?;
    /// tags.set(vec!["hot"])?;
    /// assert_eq!(tags.snapshot(), serde_json::json!(["hot"]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn set(&self, value: T) -> Result<(), ObservableError>
    where
        T: Serialize,
    {
        self.cursor().set(Tree::encode(&value))
    }

    /// A cursor of the whole value.
    ///
    /// ```
    /// let tags = pinned::Observable::new(vec!["new"])?;
    /// tags.cursor().push("hot")?;
    /// assert_eq!(tags.snapshot(), serde_json::json!(["new", "hot"]));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.node().clone(), false)
    }

    /// A cursor of the element under a key or at a position.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let page = pinned::Observable::new(json!({ "todos": [{ "done": false }] }))?;
    /// page.at("todos").at(0).at("done").set(true)?;
    /// assert_eq!(page.snapshot(), json!({ "todos": [{ "done": true }] }));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn at(&self, segment: impl Into<Segment>) -> Cursor {
        self.cursor().at(segment)
    }

    /// A handle that does not keep the observable alive: for subscribers that write to what they are subscribed to.
    ///
    /// ```
    /// let count = pinned::Observable::new(0)?;
    /// let weak = count.downgrade();
    /// count.subscribe(move |_| {
    ///     let Some(count) = weak.upgrade() else { return };
    ///     if count.get().is_ok_and(|n| n > 10) { let _ = count.set(0); }
    /// }).forever();
    /// count.set(11)?;
    /// assert_eq!(count.get()?, 0);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn downgrade(&self) -> WeakObservable<T> {
        WeakObservable {
            node: Arc::downgrade(self.node()),
            value: PhantomData,
        }
    }
}

fn build<T>(tree: Tree) -> Result<Observable<T>, ObservableError> {
    let observable = Observable::of(Node::new(Value::Null.into()));
    observable.cursor().set(tree)?;
    Ok(observable)
}

impl<T> Deref for Observable<T> {
    type Target = ObservableView<T>;

    fn deref(&self) -> &ObservableView<T> {
        &self.view
    }
}

impl<T> Clone for Observable<T> {
    fn clone(&self) -> Self {
        Self::of(self.node().clone())
    }
}

impl<T: Default + Serialize> Default for Observable<T> {
    /// An observable of the default `T`; of a [`Value`], null.
    ///
    /// # Panics
    ///
    /// When the default `T` cannot stand in a tree.
    fn default() -> Self {
        match Self::new(T::default()) {
            Ok(observable) => observable,
            Err(error) => panic!("the default value cannot be observable: {error}"),
        }
    }
}

impl<T> Serialize for Observable<T> {
    /// As its value. Inside a value that is written to another observable, it is mounted.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        encode::serialize_node(self.node(), false, serializer)
    }
}

impl<'de, T: Serialize + DeserializeOwned> Deserialize<'de> for Observable<T> {
    /// A new observable of what a `T` reads.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(T::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<T> fmt::Debug for Observable<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Observable").finish_non_exhaustive()
    }
}

/// A handle of an [`Observable`] that does not keep it alive.
pub struct WeakObservable<T = Value> {
    node: Weak<Node>,
    value: PhantomData<fn() -> T>,
}

impl<T> WeakObservable<T> {
    /// The observable, unless all its handles are gone and it is not mounted.
    ///
    /// ```
    /// let count = pinned::Observable::new(1)?;
    /// let weak = count.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(count);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn upgrade(&self) -> Option<Observable<T>> {
        self.node.upgrade().map(Observable::of)
    }
}

impl<T> Clone for WeakObservable<T> {
    fn clone(&self) -> Self {
        Self {
            node: self.node.clone(),
            value: PhantomData,
        }
    }
}

impl<T> fmt::Debug for WeakObservable<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WeakObservable").finish_non_exhaustive()
    }
}
