//! The struct that the tests of durable fields and replies host.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::response::sse::{Event, Sse};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use pinned::durability::InstanceKey;
use pinned::observable::Change;
use pinned::{
    BoxError, Context, Dispatch, Durable, HostOptions, Instance, Json, Persistent, PersistentQueue,
    Tray, TrayError, WebSocket, WorkerBuilder, pinned_api, route,
};
use serde_json::json;

use super::store::Switched;
use crate::app::{App, Gate};

#[derive(Durable)]
pub(crate) struct Account {
    pub(crate) balance: Persistent<i64>,
    #[durable(initial = "nobody".to_owned())]
    pub(crate) owner: Persistent<String>,
    pub(crate) entries: Persistent<Vec<i64>>,
    seen: u64,
}

#[derive(Tray)]
pub(crate) struct Notes {
    pub(crate) queue: PersistentQueue<i64>,
    pub(crate) sum: Persistent<i64>,
}

/// Where handlers of the slow kind wait.
#[derive(Clone)]
pub(crate) struct Slow(pub(crate) Gate);

async fn wait(ctx: &Context) {
    if let Some(slow) = ctx.state::<Slow>() {
        slow.0.pass().await;
    }
}

#[pinned_api]
impl Account {
    #[route::get("/")]
    async fn balance(&self) -> Json<i64> {
        Json(*self.balance)
    }

    /// Instances live anew count from one.
    #[route::get("/seen")]
    async fn seen(&mut self) -> Json<u64> {
        self.seen += 1;
        Json(self.seen)
    }

    #[route::post("/add/{n}", durable)]
    async fn add(&mut self, Path(n): Path<i64>) -> Json<i64> {
        self.balance.update(|balance| *balance += n);
        Json(*self.balance)
    }

    /// Waits first.
    #[route::post("/slow/{n}", durable)]
    async fn slow(&mut self, ctx: Context, Path(n): Path<i64>) -> Json<i64> {
        wait(&ctx).await;
        self.balance.update(|balance| *balance += n);
        Json(*self.balance)
    }

    /// Changes nothing.
    #[route::post("/nothing", durable)]
    async fn nothing(&self) -> &'static str {
        "nothing"
    }

    /// Does not wait.
    #[route::post("/loose/{n}")]
    async fn loose(&mut self, Path(n): Path<i64>) -> Json<i64> {
        self.balance.update(|balance| *balance += n);
        Json(*self.balance)
    }

    #[route::post("/own/{owner}", durable)]
    async fn own(&mut self, Path(owner): Path<String>) {
        self.owner.set(owner);
    }

    #[route::post("/reset", durable)]
    async fn reset(&mut self) {
        self.balance.reset();
        self.owner.reset();
        self.entries.reset();
    }

    /// Both, or neither.
    #[route::post("/book/{n}", durable)]
    async fn book(&mut self, ctx: Context, Path(n): Path<i64>) -> Result<(), StatusCode> {
        let frontier = ctx.frontier().map_err(|_| StatusCode::NOT_IMPLEMENTED)?;
        let booked = frontier.atomic(|| {
            self.balance.update(|balance| *balance += n);
            assert!(n != 13, "half way");
            self.entries.update(|entries| entries.push(n));
        });
        booked.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
    }

    #[route::post("/refuse/{n}", durable)]
    async fn refuse(&mut self, Path(n): Path<i64>) -> Result<(), StatusCode> {
        self.balance.update(|balance| *balance += n);
        Err(StatusCode::CONFLICT)
    }

    #[route::post("/panic/{n}", durable)]
    async fn panic(&mut self, Path(n): Path<i64>) {
        self.balance.update(|balance| *balance += n);
        panic!("told to");
    }

    /// Its first chunk is ready at once, its second when the gate opens.
    #[route::post("/stream/{n}", durable)]
    async fn stream(&mut self, ctx: Context, Path(n): Path<i64>) -> Body {
        self.balance.update(|balance| *balance += n);
        let chunks = stream::once(async { Ok::<_, BoxError>(Bytes::from("one ")) });
        let rest = stream::once(async move {
            wait(&ctx).await;
            Ok(Bytes::from("two"))
        });
        Body::from_stream(chunks.chain(rest))
    }

    #[route::post("/note/{n}", durable)]
    async fn note(this: Instance<Self>, Path(n): Path<i64>) -> Result<(), TrayError> {
        let notes = this.tray(Self::NOTES).await?;
        let _ = notes.admit(|notes| notes.queue.push(n))?;
        Ok(())
    }

    #[tray]
    pub(crate) async fn notes(
        this: Instance<Self>,
        n: i64,
        dispatch: Dispatch<Notes>,
    ) -> Result<(), BoxError> {
        let frontier = this.context().frontier()?;
        let mut account = this.write().await?;
        frontier.atomic(|| {
            account.balance.update(|balance| *balance += n);
            dispatch.update(|notes| notes.sum.update(|sum| *sum += n))
        })??;
        Ok(())
    }

    #[route::websocket("/watch")]
    async fn watch(this: Instance<Self>, socket: WebSocket) -> Result<(), BoxError> {
        let balance = this.write().await?.balance.observe()?;
        let (value, mut changes) = balance.watch(16);
        socket
            .send_text(json!({ "value": value }).to_string())
            .await?;
        while let Some(Change::Op(op)) = changes.next().await {
            socket.send_text(json!({ "op": op }).to_string()).await?;
        }
        Ok(())
    }

    #[route::get("/events")]
    async fn events(
        this: Instance<Self>,
    ) -> Result<Sse<impl futures_util::Stream<Item = Result<Event, BoxError>> + use<>>, StatusCode>
    {
        let mut account = this
            .write()
            .await
            .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let entries = account
            .entries
            .observe()
            .map_err(|_| StatusCode::CONFLICT)?;
        let (value, changes) = entries.watch(16);
        let first = stream::once(async move { Ok(Event::default().data(value.to_string())) });
        let rest = changes.take(2).map(|change| match change {
            Change::Op(op) => Ok(Event::default().json_data(op)?),
            other => Err(format!("{other:?}").into()),
        });
        Ok(Sse::new(first.chain(rest)))
    }
}

/// A worker with accounts over a store that can be parked.
pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) store: Switched,
    pub(crate) slow: Gate,
}

pub(crate) async fn world() -> World {
    world_over(Switched::new()).await
}

pub(crate) async fn world_over(store: Switched) -> World {
    world_of(store, |builder| builder).await
}

pub(crate) fn quick() -> HostOptions {
    HostOptions::new()
        .namespace("/accounts")
        .idle_timeout(Duration::from_secs(5))
        .sweep_interval(Duration::from_secs(1))
}

pub(crate) async fn world_of(
    store: Switched,
    settings: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> World {
    let slow = Gate::closed();
    let builder = pinned::PinnedWorker::builder()
        .host_with::<Account>(quick())
        .state(Slow(slow.clone()))
        .store(store.clone());
    World {
        app: App::start(settings(builder)).await,
        store,
        slow,
    }
}

impl World {
    pub(crate) fn row(&self) -> Option<(bool, String)> {
        self.row_of("~")
    }

    pub(crate) fn row_of(&self, tray: &str) -> Option<(bool, String)> {
        let rows = self.store.disk.rows(&InstanceKey::new("/accounts", "a"));
        let row = rows
            .into_iter()
            .find(|row| (&*row.key.tray_ns, &*row.key.tray_id) == (tray, "~"))?;
        Some((row.state.marked, row.state.doc.as_str().to_owned()))
    }

    pub(crate) async fn post(&self, path: &str) -> crate::app::Reply {
        self.app.post(&format!("/accounts/a{path}")).send().await
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        self.app.get(&format!("/accounts/a{path}")).text().await
    }

    /// Sends it from a task of its own.
    pub(crate) async fn begin(&self, path: &str) -> tokio::task::JoinHandle<crate::app::Reply> {
        self.app.post(&format!("/accounts/a{path}")).begin().await
    }

    pub(crate) fn host(&self) -> pinned::PinnedHost<Account> {
        self.app.worker.hosted::<Account>().expect("mounted")
    }
}
