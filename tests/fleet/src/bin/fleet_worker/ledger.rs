//! The instance: a durable queue, and routes that say who answers.

use std::collections::BTreeMap;

use pinned::{
    Context, Dispatch, Instance, Json, Persistent, PersistentQueue, Tray, TrayError, inbox,
    lifespan, pinned_api, route,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::activity::Activity;
use crate::shadow;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    id: String,
    /// How long its first attempts take, in milliseconds.
    #[serde(default)]
    takes: u64,
    /// The edition that alone takes that long over it, and does so on every attempt.
    #[serde(default)]
    holds: String,
}

/// What this edition calls itself, in items and in answers.
const EDITION: &str = "rust";

#[derive(Tray)]
pub(crate) struct Work {
    queue: PersistentQueue<Item>,
    /// The attempt that each item was done in.
    executed: Persistent<BTreeMap<String, u64>>,
}

#[inbox]
impl Work {
    fn enqueue(&mut self, item: Item) {
        self.queue.push(item);
    }
}

pub(crate) struct Ledger {
    ctx: Context,
    activity: std::sync::Arc<Activity>,
    count: u64,
}

#[pinned_api(idle_timeout = "2s", sweep_interval = "500ms")]
impl Ledger {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let activity = ctx.state::<Activity>().expect("given by main");
        let ledger = Self {
            ctx,
            activity,
            count: 0,
        };
        ledger.note("start");
        ledger
    }

    /// Counts in memory, alone, and says who counted.
    #[route::post("/touch")]
    async fn touch(&mut self) -> Json<Value> {
        self.note("run");
        self.count += 1;
        Json(self.who())
    }

    #[route::get("/who")]
    async fn whoami(&self) -> Json<Value> {
        self.note("run");
        Json(self.who())
    }

    /// Leaves something behind that writes under this epoch as long as the store lets it.
    #[route::post("/shadow")]
    async fn shadow(&self) {
        let store = self.ctx.state().expect("given by main");
        shadow::follow(&self.ctx, store, std::sync::Arc::clone(&self.activity));
    }

    /// Answers once the item is durably admitted.
    #[route::post("/enqueue")]
    async fn enqueue(
        this: Instance<Self>,
        Json(item): Json<Item>,
    ) -> Result<Json<Value>, TrayError> {
        let admitted = item.id.clone();
        this.tray(Self::WORK).await?.enqueue(item)?.await?;
        Ok(Json(json!({ "admitted": admitted })))
    }

    #[route::get("/")]
    async fn progress(this: Instance<Self>) -> Result<Json<Value>, TrayError> {
        let work = this.tray(Self::WORK).await?;
        let progress =
            work.read(|work| json!({ "executed": *work.executed, "queued": work.queue.len() }))?;
        Ok(Json(progress))
    }

    /// Calls another instance, wherever it lives.
    #[route::get("/ask/{other}")]
    async fn ask(
        this: Instance<Self>,
        pinned::axum::extract::Path(other): pinned::axum::extract::Path<String>,
    ) -> Result<Json<Value>, String> {
        let answer = this
            .context()
            .cluster()
            .get(format!("/ledgers/{other}/who"))
            .send()
            .await
            .map_err(|error| error.to_string())?;
        Ok(Json(
            answer.json().await.map_err(|error| error.to_string())?,
        ))
    }

    #[tray]
    async fn work(
        this: Instance<Self>,
        item: Item,
        dispatch: Dispatch<Work>,
    ) -> Result<(), TrayError> {
        let ctx = this.context();
        let epoch = ctx.placement_epoch().unwrap_or(0);
        let activity = ctx.state::<Activity>().expect("given by main");
        activity.note_item("deliver", ctx.id(), epoch, &item.id);
        let attempt = dispatch.attempts();
        let slow = match item.holds.as_str() {
            "" => attempt < 3,
            holder => holder == EDITION,
        };
        if item.takes > 0 && slow {
            let takes = std::time::Duration::from_millis(item.takes);
            this.context().domain().sleep(takes).await;
        }
        dispatch.update(|work| {
            work.executed
                .update(|executed| executed.insert(item.id.clone(), attempt));
        })
    }
}

impl Ledger {
    fn epoch(&self) -> u64 {
        self.ctx.placement_epoch().unwrap_or(0)
    }

    fn note(&self, event: &str) {
        self.activity.note(event, self.ctx.id(), self.epoch());
    }

    fn who(&self) -> Value {
        json!({
            "edition": EDITION,
            "pid": std::process::id(),
            "epoch": self.epoch().to_string(),
            "count": self.count,
        })
    }
}

/// The end of the value is the end of the instance, torn down or not.
impl Drop for Ledger {
    fn drop(&mut self) {
        self.note("end");
    }
}
