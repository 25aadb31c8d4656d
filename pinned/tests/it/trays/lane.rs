//! The struct that the tests of trays host: its handlers and hooks do as the test's script says.

use axum::extract::Path;
use pinned::{
    BoxError, Context, Dispatch, HostOptions, Instance, Persistent, PersistentOutbox,
    PersistentQueue, SetupError, Tray, TrayError, TrayHandle, inbox, lifespan, pinned_api, route,
};
use serde::{Deserialize, Serialize};

use super::script::{Delivery, Script};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) n: u64,
}

/// Two deliveries of a minute each.
#[derive(Tray)]
#[tray(max_attempts = 2, dispatch_timeout = "60s")]
pub(crate) struct Work {
    #[tray(items)]
    pub(crate) queue: PersistentQueue<Job>,
    pub(crate) words: PersistentQueue<String>,
    pub(crate) done: Persistent<u64>,
    #[tray(initial = Some(1))]
    pub(crate) choice: Persistent<Option<u64>>,
    pub(crate) charge: PersistentOutbox<String>,
    #[tray(skip)]
    pub(crate) memory: Vec<u64>,
}

#[inbox]
impl Work {
    pub(crate) fn enqueue(&mut self, n: u64) {
        self.queue.push(Job { n });
    }

    /// Appends, and fails.
    pub(crate) fn refuse(&mut self, n: u64) -> Result<(), BoxError> {
        self.queue.push(Job { n });
        self.done.set(n);
        Err("refused".into())
    }
}

/// Drains on while its instance winds down.
#[derive(Tray)]
#[tray(drain_on_eviction = true, dispatch_timeout = "60s")]
pub(crate) struct Drain {
    queue: PersistentQueue<Job>,
}

#[inbox]
impl Drain {
    pub(crate) fn enqueue(&mut self, n: u64) {
        self.queue.push(Job { n });
    }
}

/// Always open, by ids.
#[derive(Tray)]
pub(crate) struct Kept {
    queue: PersistentQueue<Job>,
}

#[inbox]
impl Kept {
    pub(crate) fn enqueue(&mut self, n: u64) {
        self.queue.push(Job { n });
    }
}

pub(crate) struct Lane {
    script: Script,
}

pub(crate) const IDLE: std::time::Duration = std::time::Duration::from_secs(300);

pub(crate) fn options() -> HostOptions {
    HostOptions::new()
        .namespace("/lanes")
        .idle_timeout(IDLE)
        .sweep_interval(std::time::Duration::from_secs(1))
}

#[pinned_api("/lanes")]
impl Lane {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        let script = ctx.state::<Script>().expect("the worker has a script");
        let script = Script::clone(&script);
        script.set_up(ctx).await.map_err(SetupError::new)?;
        Ok(Self { script })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) -> Result<(), BoxError> {
        self.script.tear_down()
    }

    /// Admits a job, and waits for nothing.
    #[route::post("/jobs/{n}")]
    async fn enqueue(this: Instance<Self>, Path(n): Path<u64>) -> Result<(), TrayError> {
        this.tray(Self::WORK).await?.enqueue(n).map(drop)
    }

    /// Opens a room that is there.
    #[route::get("/rooms/{room}")]
    async fn room(this: Instance<Self>, Path(room): Path<String>) -> Result<(), TrayError> {
        this.trays(Self::ROOMS)?.get(&room).await.map(drop)
    }

    #[tray]
    pub(crate) async fn work(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Work>,
    ) -> Result<(), BoxError> {
        script(&this)
            .deliver(Delivery {
                this,
                job,
                dispatch,
            })
            .await
    }

    #[tray]
    pub(crate) async fn drain(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Drain>,
    ) -> Result<(), BoxError> {
        script(&this).reach(job.n, dispatch.attempts()).await;
        Ok(())
    }

    #[tray(
        map,
        on_open = Self::first_open,
        on_close = Self::first_close,
        on_open = Self::second_open,
        on_close = Self::second_close
    )]
    pub(crate) async fn rooms(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Work>,
    ) -> Result<(), BoxError> {
        script(&this)
            .deliver(Delivery {
                this,
                job,
                dispatch,
            })
            .await
    }

    #[tray(map, always_open)]
    pub(crate) async fn kept(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Kept>,
    ) -> Result<(), BoxError> {
        script(&this).reach(job.n, dispatch.attempts()).await;
        Ok(())
    }

    async fn first_open(this: Instance<Self>, tray: TrayHandle<Work>) -> Result<(), BoxError> {
        script(&this).hook("first open", this, tray).await
    }

    async fn first_close(this: Instance<Self>, tray: TrayHandle<Work>) -> Result<(), BoxError> {
        script(&this).hook("first close", this, tray).await
    }

    async fn second_open(this: Instance<Self>, tray: TrayHandle<Work>) -> Result<(), BoxError> {
        script(&this).hook("second open", this, tray).await
    }

    async fn second_close(this: Instance<Self>, tray: TrayHandle<Work>) -> Result<(), BoxError> {
        script(&this).hook("second close", this, tray).await
    }
}

fn script(this: &Instance<Lane>) -> Script {
    let script = this.context().state::<Script>();
    Script::clone(&script.expect("the worker has a script"))
}
