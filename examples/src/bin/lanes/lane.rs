//! The lane: one tray, a route to admit, and a route to look.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;

use pinned::{
    Dispatch, Instance, Json, Persistent, PersistentQueue, Tray, TrayError, inbox, pinned_api,
    route,
};
use serde::{Deserialize, Serialize};

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    id: ItemId,
    /// The first delivery waits for its process to be killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hold: bool,
}

/// Callers name their items by text or by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ItemId {
    Number(i64),
    Text(String),
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

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

#[derive(Serialize)]
pub(crate) struct Admitted {
    admitted: ItemId,
}

#[derive(Serialize)]
pub(crate) struct Progress {
    executed: BTreeMap<String, u64>,
    queued: usize,
}

#[derive(Default)]
pub(crate) struct Lane;

#[pinned_api("/lanes")]
impl Lane {
    /// Answers once the item is durably admitted.
    #[route::post("/enqueue")]
    async fn enqueue(
        this: Instance<Self>,
        Json(item): Json<Item>,
    ) -> Result<Json<Admitted>, TrayError> {
        let admitted = item.id.clone();
        this.tray(Self::WORK).await?.enqueue(item)?.await?;
        Ok(Json(Admitted { admitted }))
    }

    #[route::get("/")]
    async fn progress(this: Instance<Self>) -> Result<Json<Progress>, TrayError> {
        let work = this.tray(Self::WORK).await?;
        let progress = work.read(|work| Progress {
            executed: work.executed.clone(),
            queued: work.queue.len(),
        })?;
        Ok(Json(progress))
    }

    #[tray]
    async fn work(
        _this: Instance<Self>,
        item: Item,
        dispatch: Dispatch<Work>,
    ) -> Result<(), TrayError> {
        let attempt = dispatch.attempts();
        if item.hold && attempt == 1 {
            pending::<()>().await;
        }
        dispatch.update(|work| {
            work.executed
                .update(|executed| executed.insert(item.id.to_string(), attempt));
        })
    }
}
