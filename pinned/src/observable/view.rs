use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::cursor::Cursor;
use super::encode;
use super::error::ObservableError;
use super::node::Node;
use super::op::Op;
use super::path::Segment;
use super::read;
use super::subscribe::{Subscription, subscribe};
use super::watch::Changes;

/// An observable for reading: get, subscribe, watch and mount, but no writes.
///
/// Mounted inside another observable, it stays live there, and a write addressed through the parent into it is
/// [`ObservableError::ReadOnly`]: whoever holds the [`Observable`](super::Observable) itself decides what is written, on every
/// path. Every `Observable` dereferences to its view.
///
/// ```
/// use pinned::Observable;
/// use pinned::observable::{ObservableError, tree};
/// use serde_json::json;
///
/// let orders = Observable::new(json!([]))?;
/// let page = Observable::from_tree(tree!({ "orders": orders.view() }))?;
/// orders.cursor().push("tea")?;
/// assert_eq!(page.snapshot(), json!({ "orders": ["tea"] }));
/// assert!(matches!(page.at("orders").push("milk"), Err(ObservableError::ReadOnly { .. })));
/// # Ok::<(), ObservableError>(())
/// ```
pub struct ObservableView<T = Value> {
    node: Arc<Node>,
    value: PhantomData<fn() -> T>,
}

impl<T> ObservableView<T> {
    pub(super) fn new(node: Arc<Node>) -> Self {
        let value = PhantomData;
        Self { node, value }
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The whole value as JSON, an independent copy with mounted observables resolved.
    ///
    /// ```
    /// let count = pinned::Observable::new(1)?;
    /// assert_eq!(count.snapshot(), serde_json::json!(1));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn snapshot(&self) -> Value {
        read::snapshot(&self.node)
    }

    /// The whole value as a `T`.
    ///
    /// # Errors
    ///
    /// [`ObservableError::Deserialize`] when writes through cursors have made it something else than a `T`.
    ///
    /// ```
    /// let count = pinned::Observable::new(1_u32)?;
    /// count.set(2)?;
    /// assert_eq!(count.get()?, 2);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn get(&self) -> Result<T, ObservableError>
    where
        T: DeserializeOwned,
    {
        self.cursor().get_as()
    }

    /// Lends the whole value to `read`, as [`Cursor::with`] does.
    ///
    /// ```
    /// let log = pinned::Observable::new(vec!["a".to_owned(), "b".to_owned()])?;
    /// assert!(log.with(|lines| lines[1] == "b"));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn with<R>(&self, read: impl FnOnce(&Value) -> R) -> R {
        read::with_whole(&self.node, read)
    }

    /// A cursor of the whole value, for reading.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "title": "Plans" }))?;
    /// assert_eq!(page.view().cursor().len()?, 1);
    /// assert!(page.view().cursor().clear().is_err());
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.node.clone(), true)
    }

    /// A cursor, for reading, of the element under a key or at a position.
    ///
    /// ```
    /// let page = pinned::Observable::new(serde_json::json!({ "title": "Plans" }))?;
    /// assert_eq!(page.view().at("title").get()?, "Plans");
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn at(&self, segment: impl Into<Segment>) -> Cursor {
        self.cursor().at(segment)
    }

    /// Another handle for reading the same value.
    ///
    /// ```
    /// let count = pinned::Observable::new(1)?;
    /// let view = count.view();
    /// count.set(2)?;
    /// assert_eq!(view.get()?, 2);
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn view(&self) -> ObservableView<T> {
        Self::new(self.node.clone())
    }

    /// Calls `subscriber` with every later op, until the subscription is dropped.
    ///
    /// It is called before the writing call returns, in order of subscription, one op at a time, and every subscriber sees
    /// the ops of a tree in one order. It may read, write and subscribe in turn: a write from inside first brings the ops
    /// before it to the subscribers that lack them. What it reads may be newer than its op. If it panics, the subscribers
    /// after it still get the op, and then the panic goes on to the writer.
    ///
    /// A subscriber that holds an `Observable` of the same tree keeps itself alive: give it a
    /// [`WeakObservable`](super::WeakObservable).
    ///
    /// Across threads: a writer waits while another thread delivers an earlier op of the tree, so do not write while holding
    /// a lock that a subscriber takes. A write from inside a subscriber never waits for another thread; where one is
    /// delivering in the tree it writes to, its op is left to that thread and may arrive after the write returned.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use pinned::observable::Op;
    /// use serde_json::json;
    ///
    /// let (sender, ops) = mpsc::channel();
    /// let page = pinned::Observable::new(json!({ "title": "Plans" }))?;
    /// page.subscribe(move |op| sender.send(op.clone()).unwrap()).forever();
    /// page.at("title").set("Final plans")?;
    /// assert_eq!(ops.recv().unwrap(), Op::replace(["title".into()], "Final plans"));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn subscribe(&self, subscriber: impl Fn(&Op) + Send + Sync + 'static) -> Subscription {
        subscribe(&self.node, subscriber, |_| ()).0
    }

    /// The value now and, exactly from there on, its ops as an async stream that keeps at most `capacity` (at least 1) ops
    /// that were not read yet. See the [module](super) for a WebSocket handler.
    ///
    /// ```
    /// use pinned::observable::{Change, Op};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let todos = pinned::Observable::new(json!([]))?;
    /// let (snapshot, mut changes) = todos.watch(64);
    /// todos.cursor().push("water the plants")?;
    /// assert_eq!(snapshot, json!([]));
    /// let op = Op::add([0.into()], "water the plants");
    /// assert_eq!(changes.next().await, Some(Change::Op(op)));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// # }).unwrap();
    /// ```
    pub fn watch(&self, capacity: usize) -> (Value, Changes) {
        Changes::start(&self.node, capacity)
    }

    /// Whether both are handles of the same observable, not merely equal.
    ///
    /// ```
    /// let count = pinned::Observable::new(1)?;
    /// assert!(count.is_same(&count.view()));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn is_same<U>(&self, other: &ObservableView<U>) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }
}

impl<T> Clone for ObservableView<T> {
    fn clone(&self) -> Self {
        self.view()
    }
}

impl<T> Serialize for ObservableView<T> {
    /// As its value. Inside a value that is written to another observable, it is mounted, read-only.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        encode::serialize_node(&self.node, true, serializer)
    }
}

impl<T> fmt::Debug for ObservableView<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ObservableView").finish_non_exhaustive()
    }
}
