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
/// Every error of this crate that a handler may meet is an answer: [`Refusal`](crate::Refusal),
/// [`TrayError`](crate::TrayError), [`FrontierError`](crate::FrontierError), [`NoStateStore`](crate::NoStateStore). A
/// handler that meets several returns `axum::response::Result<..>`, for whose error `?` takes any of them, and any
/// `IntoResponse` of your own.
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

#[doc = include_str!("docs/tray.md")]
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

#[doc = include_str!("docs/durable.md")]
pub use pinned_macros::Durable;
