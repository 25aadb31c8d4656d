//! An instance that streams, works and leaves as it is told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use pinned::axum::body::{Body, Bytes};
use pinned::axum::extract::Path;
use pinned::{Context, Json, lifespan, pinned_api, route};
use serde_json::{Value, json};

use crate::activity::Activity;

pub(crate) struct Guest {
    ctx: Context,
    activity: Arc<Activity>,
}

#[pinned_api(idle_timeout = "1m", sweep_interval = "200ms")]
impl Guest {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let activity = ctx.state::<Activity>().expect("given by main");
        let guest = Self { ctx, activity };
        guest.note("start");
        guest
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.note("end");
    }

    #[route::get("/who")]
    async fn whoami(&self) -> Json<Value> {
        self.note("run");
        let epoch = self.ctx.placement_epoch().unwrap_or(0).to_string();
        Json(json!({ "pid": std::process::id(), "epoch": epoch }))
    }

    /// Sends a chunk again and again, for as long as the instance lives.
    #[route::get("/stream")]
    async fn stream(&self) -> Body {
        self.note("run");
        let domain = self.ctx.domain().clone();
        Body::from_stream(futures_util::stream::unfold(domain, |domain| async {
            domain.sleep(Duration::from_millis(50)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b"chunk\n")), domain))
        }))
    }

    /// Works for as long as it may.
    #[route::post("/hold/{ms}")]
    async fn hold(&self, Path(ms): Path<u64>) -> Json<Value> {
        self.note("run");
        self.ctx.domain().sleep(Duration::from_millis(ms)).await;
        Json(json!({ "held": ms }))
    }

    /// Has a task that never ends.
    #[route::post("/task")]
    async fn task(&self) {
        self.note("run");
        self.ctx.spawn(std::future::pending::<()>());
    }

    /// Asks to be let go, as an instance does that knows best when.
    #[route::post("/leave/{ms}")]
    async fn leave(&self, Path(ms): Path<u64>) {
        self.note("run");
        self.ctx.lease().wind_down(Some(Duration::from_millis(ms)));
    }
}

impl Guest {
    fn note(&self, event: &str) {
        let epoch = self.ctx.placement_epoch().unwrap_or(0);
        self.activity.note(event, self.ctx.id(), epoch);
    }
}
