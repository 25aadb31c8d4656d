//! The macros, documented where users meet them.

#[doc = include_str!("docs/pinned_api.md")]
pub use pinned_macros::pinned_api;

/// Keeps a library crate in the program, although nothing of it is used by name, so that its annotated structs are
/// found.
///
/// A linker takes from a library only what the program refers to. A crate of which nothing at all is used may be left
/// out whole, annotated structs included; naming it once is enough:
///
/// ```
/// pinned::link!(pinned);
/// ```
#[macro_export]
macro_rules! link {
    ($($name:ident),+ $(,)?) => {
        $(
            #[allow(unused_extern_crates)]
            const _: () = {
                extern crate $name;
            };
        )+
    };
}

/// Which requests a handler answers: `#[route::get("/path")]` and its kin, inside a [`macro@crate::pinned_api`] block.
///
/// The receiver says how the handler runs:
///
/// | receiver | meaning |
/// |---|---|
/// | `&self` | a shared turn: beside other `&self` handlers |
/// | `&mut self` | the exclusive turn: alone, first come, first served |
/// | `this: Instance<Self>` | no turn; take one with `this.read().await?` or `this.write().await?` when needed |
///
/// A response that streams outlives the turn of a `&self` handler, so it may not borrow from `self`: write
/// `-> Sse<impl Stream<..> + use<>>`, or take `this: Instance<Self>`.
///
/// Arguments are axum extractors, and the return value is anything that is `IntoResponse`. Several routes on one
/// method work. `auth = none` makes a route public, `auth = Self::other` names another authorizer of the block.
///
/// ```
/// use axum::extract::{Path, Query};
/// use pinned::{Json, pinned_api, route};
/// use std::collections::HashMap;
///
/// #[derive(Default)]
/// struct List { items: Vec<String> }
///
/// #[pinned_api("/lists")]
/// impl List {
///     #[route::get("/items/{index}")]
///     async fn item(&self, Path(index): Path<usize>) -> Json<Option<String>> {
///         Json(self.items.get(index).cloned())
///     }
///
///     #[route::post("/items")]
///     async fn add(&mut self, Query(_query): Query<HashMap<String, String>>, item: String) -> Json<usize> {
///         self.items.push(item);
///         Json(self.items.len())
///     }
/// }
/// ```
///
/// `Path` holds the parameters of the route itself, `{index}` above, and not the id. The id is
/// [`Context::id`](crate::Context::id) or [`Instance::id`](crate::Instance::id). A handler and a setup get a
/// [`Context`](crate::Context) as an argument, and whoever has an `Instance<Self>` by `this.context()`:
///
/// ```
/// use pinned::{Context, Instance, pinned_api, route};
///
/// #[derive(Default)]
/// struct Room;
///
/// #[pinned_api("/rooms")]
/// impl Room {
///     #[route::get("/name")]
///     async fn name(&self, ctx: Context) -> String { ctx.id().to_owned() }
///
///     #[route::get("/address")]
///     async fn address(this: Instance<Self>) -> String {
///         format!("{}/{}", this.context().namespace(), this.id())
///     }
/// }
/// ```
///
/// A WebSocket handler takes its socket as the last argument: a [`WebSocket`](crate::WebSocket), which is accepted when
/// the handler begins, or a [`WebSocketUpgrade`](crate::WebSocketUpgrade), to refuse it or to choose a subprotocol or
/// limits first. The socket is closed when the handler returns. With `this: Instance<Self>` it holds a turn only where
/// it takes one; with `&mut self` nobody else would have a turn for as long as the socket is open.
///
/// ```
/// use pinned::ws::Message;
/// use pinned::{BoxError, Instance, WebSocket, pinned_api, route};
///
/// #[derive(Default)]
/// struct Log { lines: Vec<String> }
///
/// #[pinned_api("/logs")]
/// impl Log {
///     #[route::websocket("/ws")]
///     async fn write(this: Instance<Self>, mut socket: WebSocket) -> Result<(), BoxError> {
///         while let Some(message) = socket.recv().await {
///             match message? {
///                 Message::Text(line) => {
///                     let count = {
///                         let mut log = this.write().await?;
///                         log.lines.push(line.to_string());
///                         log.lines.len()
///                     };
///                     socket.send_text(count.to_string()).await?;
///                 }
///                 Message::Close(_) => break,
///                 _ => {}
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
///
/// With `durable` a route answers only when everything that its instance enlisted before the answer is in the store. A
/// WebSocket has no single answer, and cannot be durable.
///
/// ```
/// use pinned::{Durable, Json, Persistent, pinned_api, route};
///
/// #[derive(Durable)]
/// struct Account { balance: Persistent<i64> }
///
/// #[pinned_api("/accounts")]
/// impl Account {
///     /// Whoever sees the new balance can rely on it.
///     #[route::post("/deposit", durable)]
///     async fn deposit(&mut self, Json(amount): Json<i64>) -> Json<i64> {
///         self.balance.update(|balance| *balance += amount);
///         Json(*self.balance)
///     }
/// }
/// ```
pub mod route {
    pub use pinned_macros::{
        route_delete as delete, route_get as get, route_patch as patch, route_post as post,
        route_put as put, route_websocket as websocket,
    };
}

/// How an instance begins and ends: `#[lifespan::setup]` and `#[lifespan::teardown]`, inside a
/// [`macro@crate::pinned_api`] block.
///
/// A teardown runs in every close: idle eviction, wind-down, abort, shutdown. Keep it to what is the instance's own: in a
/// drain the instances it might call are closing too. A teardown that returns an error is logged, and the placement is
/// not handed back.
///
/// ```
/// use pinned::{Context, SetupError, lifespan, pinned_api};
///
/// struct Session { started: std::time::SystemTime }
///
/// #[pinned_api("/sessions")]
/// impl Session {
///     #[lifespan::setup]
///     async fn setup(ctx: Context) -> Result<Self, SetupError> {
///         Ok(Self { started: ctx.domain().now() })
///     }
///
///     #[lifespan::teardown]
///     async fn teardown(&mut self) {
///         println!("lived since {:?}", self.started);
///     }
/// }
/// ```
///
/// The setup of a struct with durable fields is given these as they are stored:
/// `async fn setup(ctx: Context, stored: Stored<Self>) -> Self`. See [`Durable`](macro@crate::Durable).
pub mod lifespan {
    pub use pinned_macros::{lifespan_setup as setup, lifespan_teardown as teardown};
}

/// Who may call: `#[authorize]` inside a [`macro@crate::pinned_api`] block, where it needs no import.
///
/// The function has no `self`, because it runs before setup, once for each request to a route that neither is public
/// (`auth = none`) nor names another function of the same shape (`auth = Self::other`).
///
/// A block without `#[authorize]` leaves every route open that names no function itself: whoever reaches the port may call.
///
/// ```
/// use pinned::{Auth, AuthRejected, Connection, Context, Denied, pinned_api, route};
///
/// #[derive(Default)]
/// struct Note { text: String }
///
/// #[pinned_api("/notes")]
/// impl Note {
///     #[authorize]
///     async fn authorize(_ctx: &Context, conn: &Connection) -> Result<String, Denied> {
///         match conn.headers().get("x-user").and_then(|user| user.to_str().ok()) {
///             Some(user) => Ok(user.to_owned()),
///             None => Err(AuthRejected::new("sign in first").into()),
///         }
///     }
///
///     #[route::put("/")]
///     async fn write(&mut self, user: Auth<String>, text: String) {
///         self.text = format!("{}: {text}", *user);
///     }
///
///     #[route::get("/", auth = none)]
///     async fn read(&self) -> String { self.text.clone() }
/// }
/// ```
///
/// All namespaces are on one port, those for other instances only as well. Their authorizer looks at who is vouched for: a
/// call through [`Context::cluster`](crate::Context::cluster) is attested by the host, and nobody outside can claim to be
/// an instance.
///
/// ```
/// use pinned::{Attestation, AuthRejected, Connection, Context, Denied, pinned_api, route};
///
/// #[derive(Default)]
/// struct Audit { entries: Vec<String> }
///
/// #[pinned_api("/audit")]
/// impl Audit {
///     #[authorize]
///     async fn notes_only(_ctx: &Context, conn: &Connection) -> Result<(), Denied> {
///         match conn.attestation() {
///             Attestation::Instance { ns, .. } if ns == "/notes" => Ok(()),
///             _ => Err(AuthRejected::new("only notes write here").forbidden().into()),
///         }
///     }
///
///     #[route::post("/")]
///     async fn append(&mut self, event: String) { self.entries.push(event); }
/// }
/// ```
pub use pinned_macros::authorize;

/// What an instance adds to its row of the worker's stats: `#[stats]` inside a [`macro@crate::pinned_api`] block, where
/// it needs no import.
///
/// ```
/// use pinned::pinned_api;
///
/// #[derive(Default)]
/// struct Queue { waiting: Vec<String> }
///
/// #[pinned_api("/queues")]
/// impl Queue {
///     #[stats]
///     fn stats(&self) -> std::collections::BTreeMap<&'static str, usize> {
///         [("waiting", self.waiting.len())].into()
///     }
/// }
/// ```
///
/// `/_pinned/stats` answers to the worker's secret, which in local mode is random in each process, so that nobody outside
/// can read it. Serve [`PinnedWorker::stats`](crate::PinnedWorker::stats) from a route of your own instead, behind
/// whatever guards your internal pages:
///
/// ```no_run
/// use std::sync::OnceLock;
///
/// use pinned::axum::response::IntoResponse;
/// use pinned::axum::{Router, routing::get};
/// use pinned::{Json, PinnedWorker};
///
/// static WORKER: OnceLock<PinnedWorker> = OnceLock::new();
///
/// async fn stats() -> impl IntoResponse { Json(WORKER.get().map(PinnedWorker::stats)) }
///
/// #[tokio::main]
/// async fn main() -> pinned::Result<()> {
///     let worker = PinnedWorker::builder()
///         .hosts_from_registry()
///         .environment()
///         .merge(Router::new().route("/internal/stats", get(stats)))
///         .build()?;
///     WORKER.get_or_init(|| worker.clone()).clone().serve().await
/// }
/// ```
pub use pinned_macros::stats;

/// Makes a struct a tray: durable fields, and a queue that a handler of the instance works through.
///
/// A tray is one row of the state store. Its items are handled one at a time, in order, each until its handler has
/// returned: a crash in between brings the item again. The struct says what is kept, and a `#[tray]` handler in a
/// [`macro@crate::pinned_api`] block works on it. [`macro@crate::inbox`] says how work gets in.
///
/// ```
/// use pinned::{BoxError, Dispatch, Instance, Persistent, PersistentQueue, Tray, inbox, pinned_api, route};
///
/// #[derive(Tray)]
/// #[tray(max_attempts = 5, dispatch_timeout = "30s")]
/// struct Mail {
///     queue: PersistentQueue<String>,
///     sent: Persistent<u64>,
/// }
///
/// #[inbox]
/// impl Mail {
///     /// Puts a letter into the queue.
///     fn send(&mut self, letter: String) { self.queue.push(letter); }
/// }
///
/// #[derive(Default)]
/// struct Office { open_windows: u64 }
///
/// #[pinned_api("/offices")]
/// impl Office {
///     /// An error aborts the instance, and the letter comes again.
///     #[tray]
///     async fn mail(this: Instance<Self>, letter: String, dispatch: Dispatch<Mail>) -> Result<(), BoxError> {
///         println!("attempt {} of {letter}", dispatch.attempts());
///         this.write().await?.open_windows += 1;
///         dispatch.update(|mail| mail.sent.update(|sent| *sent += 1))?;
///         Ok(())
///     }
///
///     #[route::post("/letters", durable)]
///     async fn post(this: Instance<Self>, letter: String) -> Result<(), String> {
///         let mail = this.tray(Self::MAIL).await.map_err(|error| error.to_string())?;
///         // The route is durable: it waits for the receipt, too.
///         let _receipt = mail.send(letter).map_err(|error| error.to_string())?;
///         Ok(())
///     }
/// }
/// ```
///
/// # Fields
///
/// | field | meaning |
/// |---|---|
/// | `PersistentQueue<T>`, `PersistentOutbox<T>` | kept; empty at first |
/// | `Persistent<T>` | kept; `T::default()` at first |
/// | `#[tray(initial = expression)]` before a `Persistent<T>` | that value at first |
/// | `#[tray(items)]` before a `PersistentQueue<T>` | of several queues the one whose entries are the items |
/// | `#[tray(skip)]` | not kept: `Default` whenever the tray opens |
///
/// # Options
///
/// | option of `#[tray(..)]` on the struct | value | default |
/// |---|---|---|
/// | `version` | a number; a row of another version is not read, and begins anew | 0 |
/// | `max_attempts` | deliveries of one item before the tray parks | 10 |
/// | `dispatch_timeout` | how long a handler may run, like `"30s"` | 12 h |
/// | `drain_on_eviction` | whether it works on until it is empty while its instance winds down | `false` |
/// | `source` | the items come from its [`TraySource`](crate::TraySource) | the queue |
/// | `lifecycle` | its [`TrayLifecycle`](crate::TrayLifecycle) runs around its life | nothing |
/// | `crate` | where this crate is found when it is renamed or re-exported | looked up |
///
/// # The handler
///
/// `#[tray]` needs no import, and stands on a method of the block:
/// `async fn work(this: Instance<Self>, item: Item, dispatch: Dispatch<Work>)`, which returns nothing or a `Result`. It
/// may run for long, so it holds no turn; it takes `this.read()` or `this.write()` where it needs one. The tray is named
/// as the handler is, which is the name of its rows: renaming the handler leaves them behind.
///
/// Beside the handler there is a constant of that name in capitals, as visible as the handler: `Office::MAIL` above. With
/// it `this.tray(..)` gives the tray, and for a map `this.trays(..)` all of them.
///
/// | `#[tray(..)]` on the handler | meaning |
/// |---|---|
/// | `map` | any number of trays, by ids of your choice |
/// | `always_open` | those of the map open with their instance, not only while they have work |
/// | `on_open = Self::name` | runs when a tray of it opens, before any item: `async fn name(this: Instance<Self>, tray: TrayHandle<Work>)` |
/// | `on_close = Self::name` | runs when it closes |
///
/// Hooks open in the order of the attribute and close in reverse. An `on_close` belongs to the `on_open` before it.
///
/// ```
/// use pinned::{BoxError, Dispatch, Instance, PersistentQueue, Tray, TrayHandle, inbox, pinned_api};
///
/// #[derive(Tray)]
/// struct Orders { queue: PersistentQueue<u32> }
///
/// #[inbox]
/// impl Orders {
///     fn order(&mut self, amount: u32) { self.queue.push(amount); }
/// }
///
/// #[derive(Default)]
/// struct Shop;
///
/// #[pinned_api("/shops")]
/// impl Shop {
///     /// One queue for each customer.
///     #[tray(map, on_open = Self::opened)]
///     async fn orders(_this: Instance<Self>, amount: u32, dispatch: Dispatch<Orders>) {
///         println!("{} orders {amount}", dispatch.id());
///     }
///
///     async fn opened(_this: Instance<Self>, orders: TrayHandle<Orders>) -> Result<(), BoxError> {
///         println!("{} has {} orders", orders.id(), orders.read(|orders| orders.queue.len())?);
///         Ok(())
///     }
/// }
///
/// async fn order(shop: Instance<Shop>, customer: &str) -> Result<(), BoxError> {
///     shop.trays(Shop::ORDERS)?.get_or_create(customer).await?.order(1)?.await?;
///     Ok(())
/// }
/// ```
pub use pinned_macros::Tray;

/// Lets the methods of a tray's struct be called on the handle of a tray, as durable admissions.
///
/// Stands on an inherent impl block of the struct. Its methods take `&mut self` and owned arguments, are not async, and
/// return nothing or `Result<(), E>`. The block stays as it is; beside it comes a trait, named `WorkInbox` after `Work`,
/// whose methods have the same names and arguments and give a receipt: awaited, it says that the admission is durable.
///
/// ```
/// use pinned::{BoxError, PersistentQueue, Tray, TrayHandle, inbox};
///
/// #[derive(Tray)]
/// struct Work { queue: PersistentQueue<String> }
///
/// #[inbox]
/// impl Work {
///     fn enqueue(&mut self, job: String) -> Result<(), BoxError> {
///         if self.queue.len() >= 1_000 {
///             // An error takes back all that the call has changed.
///             return Err("too much to do".into());
///         }
///         self.queue.push(job);
///         Ok(())
///     }
/// }
///
/// async fn add(work: TrayHandle<Work>) -> Result<(), BoxError> {
///     let admitted = work.enqueue("tidy up".to_owned())?;
///     // From here on a crash does not lose it.
///     admitted.await?;
///     Ok(())
/// }
/// ```
///
/// An admission is one step, in which nobody else touches the tray; that is why it cannot wait. The trait is as visible
/// as the methods are, and they alike: whoever calls them in another module imports it. `#[inbox(trait = Name)]` gives it
/// another name, which a second block of one struct needs. `crate = path` says where this crate is found when it is
/// renamed or re-exported.
pub use pinned_macros::inbox;

/// Keeps fields of a hosted struct in the state store.
///
/// Every [`Persistent`](crate::Persistent) field is durable: it is loaded before the setup, and its changes are on their
/// way to the store at once. The fields beside them are made by `Default` in each activation:
///
/// ```
/// use pinned::{Durable, Json, Persistent, pinned_api, route};
///
/// #[derive(Durable)]
/// struct Counter {
///     count: Persistent<u64>,
///     #[durable(initial = 1)]
///     step: Persistent<u64>,
///     /// Since this activation.
///     calls: u64,
/// }
///
/// #[pinned_api("/counters")]
/// impl Counter {
///     #[route::post("/increment", durable)]
///     async fn increment(&mut self) -> Json<u64> {
///         self.calls += 1;
///         let step = *self.step;
///         self.count.update(|count| *count += step);
///         Json(*self.count)
///     }
/// }
/// ```
///
/// A struct that needs a setup says `#[durable(setup)]`. Its durable fields come in a struct of their own, `CounterStored`
/// of `Counter`, which [`Stored<Self>`](crate::Stored) stands for:
///
/// ```
/// use pinned::{Context, Durable, Persistent, Stored, lifespan, pinned_api};
///
/// #[derive(Durable)]
/// #[durable(setup)]
/// struct Account {
///     balance: Persistent<i64>,
///     owner: String,
/// }
///
/// #[pinned_api("/accounts")]
/// impl Account {
///     #[lifespan::setup]
///     async fn setup(ctx: Context, stored: Stored<Self>) -> Self {
///         Self { balance: stored.balance, owner: ctx.id().to_owned() }
///     }
///
///     #[stats]
///     fn stats(&self) -> (&str, i64) { (&self.owner, *self.balance) }
/// }
/// ```
///
/// | before a field | meaning |
/// |---|---|
/// | `#[durable(initial = expression)]` | what it holds while nothing is stored, instead of `Default` |
/// | `#[durable]` | durable, although its type is written by another name than `Persistent` |
/// | `#[durable(skip)]` | not durable, although its type is called `Persistent` |
///
/// Queues and outboxes stand in trays: see [`Tray`](macro@crate::Tray). `#[durable(crate = path)]` says where this crate is
/// found when it is renamed or re-exported.
pub use pinned_macros::Durable;
