//! Observable values: JSON that tells its subscribers about every change.
//!
//! An [`Observable`] holds one value. Reading gives plain copies; every write changes the value and emits one [`Op`]: small,
//! plain data that says what changed where, and from which a receiver keeps its own copy up to date. Use it for state that
//! pages show.
//!
//! ```
//! use pinned::Observable;
//! use pinned::observable::Op;
//! use serde_json::json;
//! use std::sync::mpsc;
//!
//! let (sender, ops) = mpsc::channel();
//! let page = Observable::new(json!({ "status": "draft", "todos": [] }))?;
//! page.subscribe(move |op| sender.send(op.clone()).unwrap()).forever();
//!
//! page.at("status").set("published")?;
//! page.at("todos").push(json!({ "title": "water the plants", "done": false }))?;
//! page.at("todos").at(0).at("done").set(true)?;
//!
//! assert_eq!(ops.try_iter().collect::<Vec<_>>(), [
//!     Op::replace(["status".into()], "published"),
//!     Op::add(["todos".into(), 0.into()], json!({ "title": "water the plants", "done": false })),
//!     Op::replace(["todos".into(), 0.into(), "done".into()], true),
//! ]);
//! # Ok::<(), pinned::observable::ObservableError>(())
//! ```
//!
//! ## To a browser
//!
//! [`watch`](ObservableView::watch) gives the value and, exactly from there on, its ops, for a handler that holds a socket:
//!
//! ```no_run
//! use pinned::observable::Change;
//! use pinned::{BoxError, Instance, Observable, WebSocket, pinned_api, route};
//! use serde_json::json;
//!
//! #[derive(Default)]
//! struct Board { page: Observable }
//!
//! #[pinned_api("/boards")]
//! impl Board {
//!     #[route::websocket("/live")]
//!     async fn live(this: Instance<Self>, mut socket: WebSocket) -> Result<(), BoxError> {
//!         // The turn ends with this line: a viewer who stays for hours holds up nobody.
//!         let page = this.read().await?.page.clone();
//!         let (value, mut changes) = page.watch(256);
//!         socket.send_text(json!({ "value": value }).to_string()).await?;
//!         loop {
//!             let message = tokio::select! {
//!                 change = changes.next() => match change {
//!                     Some(Change::Op(op)) => json!({ "op": op }),
//!                     // The browser was too slow for 256 ops: it starts over.
//!                     Some(Change::Lagged) => json!({ "value": changes.restart() }),
//!                     None => return Ok(()),
//!                 },
//!                 message = socket.recv() => match message {
//!                     Some(message) => { message?; continue }
//!                     None => return Ok(()),
//!                 },
//!             };
//!             socket.send_text(message.to_string()).await?;
//!         }
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! ## One inside another
//!
//! An observable that is written into another one is mounted: it is not copied, it stays what it is, and its ops reach the
//! subscribers of the outer one under the path where it sits. Values that hold observables are written as a [`Tree`], most
//! simply by [`tree!`]. An observable sits in one place at a time; removing or overwriting it there sets it free, with its
//! value and its subscribers. To mount one so that nothing can be written through the outer one, mount its
//! [`view`](ObservableView::view).
//!
//! ```
//! use pinned::Observable;
//! use pinned::observable::tree;
//! use serde_json::json;
//!
//! let cart = Observable::new(vec!["tea".to_owned()])?;
//! let page = Observable::from_tree(tree!({ "title": "Shop", "carts": [&cart] }))?;
//! page.at("carts").at(0).push("milk")?;
//! assert_eq!(cart.get()?, ["tea", "milk"]);
//! # Ok::<(), pinned::observable::ObservableError>(())
//! ```
//!
//! ## What a value may be
//!
//! JSON: null, bools, strings, finite numbers, lists, and objects whose keys are strings. Integers stop at ±(2^53 − 1),
//! because receivers that read numbers as doubles would round larger ones: send those as strings. A point in time is text in
//! Rust's types (`chrono`, `jiff` and `time` all serialise to it), so unlike in languages whose JSON layer knows a timestamp
//! type there is no value of that kind here, and none that a store could fail to write.
//!
//! ## Threads
//!
//! All observables that were ever mounted together change under one lock, each write as a whole. No code of yours runs under
//! it, so it cannot deadlock, whatever subscribers do. What two threads write in turn is interleaved by whole writes; where
//! several writes must stand together, make them one (`merge`, `extend`, `set`), or hold the instance's turn.

mod content;
mod cursor;
mod cursor_list;
mod cursor_write;
mod delivery;
mod encode;
mod encode_parts;
mod error;
mod group;
mod mount;
mod node;
mod op;
mod path;
mod read;
mod session;
mod slot;
mod subscribe;
mod tree;
mod tree_macro;
mod typed;
mod value;
mod view;
mod watch;

pub use crate::__observable_tree as tree;
#[doc(inline)]
pub(crate) use delivery::without_waiting;

pub use self::cursor::Cursor;
pub use self::error::{EncodingError, ObservableError};
pub use self::op::{Op, OpKind};
pub use self::path::Segment;
pub use self::subscribe::Subscription;
pub use self::tree::Tree;
pub use self::typed::{Observable, WeakObservable};
pub use self::view::ObservableView;
pub use self::watch::{Change, Changes};
