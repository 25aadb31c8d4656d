//! What the sweep crashes: an instance with trays of every form, and durable fields of its own (S4.1 to S4.7).

use std::convert::Infallible;
use std::time::Duration;

use pinned::axum::extract::Path;
use pinned::durability::FrontierError;
use pinned::{
    BoxError, Context, Dispatch, Durable, Instance, Json, Persistent, PersistentQueue, Tray,
    TrayError, TrayHandle, TraySource, inbox, pinned_api, route,
};
use serde::{Deserialize, Serialize};

use super::probe::Probe;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) n: u64,
}

/// What goes along with an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Steer {
    n: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tail: bool,
}

/// How far the handler of an item has come.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
enum Stage {
    Taking,
    Took { n: u64 },
}

/// One run of an item.
#[derive(Serialize, Deserialize)]
struct Run {
    n: u64,
    attempts: u64,
}

/// What an item consumed.
#[derive(Serialize, Deserialize)]
struct Steered {
    n: u64,
    steers: Vec<Steer>,
}

/// So high that only an item that can never be handled parks, also where every other operation fails.
pub(super) const MAX_ATTEMPTS: u64 = 100;

/// S4.2
#[derive(Tray)]
#[tray(max_attempts = 100)]
pub(super) struct Work {
    #[tray(items)]
    queue: PersistentQueue<Item>,
    feed: PersistentQueue<Item>,
    steer: PersistentQueue<Steer>,
    done: Persistent<u64>,
}

#[inbox]
impl Work {
    fn enqueue(&mut self, n: u64) {
        self.queue.push(Item { n });
        self.feed.push(Item { n });
        self.steer.push(Steer { n, tail: false });
        self.steer.push(Steer { n, tail: true });
    }
}

/// S4.6: nothing to work through, one value.
#[derive(Tray)]
#[tray(source)]
pub(super) struct Scratch {
    value: Persistent<String>,
}

impl TraySource for Scratch {
    type Item = Infallible;

    fn next(&mut self) -> Result<Option<Infallible>, BoxError> {
        Ok(None)
    }

    fn ack(&mut self) {}
}

#[derive(Tray)]
#[tray(max_attempts = 100)]
pub(super) struct Relay {
    queue: PersistentQueue<Item>,
}

#[inbox]
impl Relay {
    fn relay(&mut self, n: u64) {
        self.queue.push(Item { n });
    }
}

#[derive(Tray)]
#[tray(max_attempts = 100)]
pub(super) struct Sink {
    queue: PersistentQueue<Item>,
    done: Persistent<u64>,
}

#[derive(Durable)]
pub(super) struct Desk {
    bumps: Persistent<u64>,
}

#[pinned_api]
impl Desk {
    #[route::post("/admit/{n}")]
    async fn admit(this: Instance<Self>, Path(n): Path<u64>) -> Result<(), TrayError> {
        Ok(this.tray(Self::WORK).await?.enqueue(n)?.await?)
    }

    #[route::post("/admit/{lane}/{n}")]
    async fn admit_keyed(
        this: Instance<Self>,
        Path((lane, n)): Path<(String, u64)>,
    ) -> Result<(), TrayError> {
        let lanes = this.trays(Self::KWORK)?;
        Ok(lanes.admit(&lane, |work| work.enqueue(n)).await?.await?)
    }

    #[route::post("/relay/{n}")]
    async fn admit_relay(this: Instance<Self>, Path(n): Path<u64>) -> Result<(), TrayError> {
        Ok(this.tray(Self::RELAY).await?.relay(n)?.await?)
    }

    #[route::post("/scratch/put", durable)]
    async fn put_scratch(this: Instance<Self>) -> Result<(), TrayError> {
        let scratch = this.trays(Self::SCRATCH)?.get_or_create("pad").await?;
        scratch.update(|scratch| scratch.value.set("notes".to_owned()))
    }

    #[route::post("/scratch/drop")]
    async fn drop_scratch(this: Instance<Self>, ctx: Context) -> Result<(), TrayError> {
        let scratch = match this.trays(Self::SCRATCH)?.get("pad").await {
            Err(error) if error.is_not_found() => return Ok(()),
            scratch => scratch?,
        };
        scratch.delete()?.await?;
        scratch.deleted().await;
        // Its end says that the tray is gone, and not that the store has confirmed it.
        Ok(ctx.frontier()?.wait().await?)
    }

    #[route::post("/bump", durable)]
    async fn bump(&mut self) -> Json<u64> {
        self.bumps.update(|bumps| *bumps += 1);
        Json(*self.bumps)
    }

    /// Whether no lane has anything to do, and all that was done is durable (S4.7).
    #[route::post("/idle")]
    async fn idle(this: Instance<Self>, ctx: Context) -> Result<Json<bool>, TrayError> {
        let busy = this.tray(Self::WORK).await?.is_marked()?
            || this.tray(Self::RELAY).await?.is_marked()?
            || this.tray(Self::SINK).await?.is_marked()?
            || !this.trays(Self::KWORK)?.live().is_empty();
        ctx.frontier()?.wait().await?;
        Ok(Json(!busy))
    }

    #[tray]
    async fn work(
        this: Instance<Self>,
        item: Item,
        dispatch: Dispatch<Work>,
    ) -> Result<(), BoxError> {
        work_through(&this, &item, &dispatch).await
    }

    #[tray(map, on_open = Self::opened)]
    async fn kwork(
        this: Instance<Self>,
        item: Item,
        dispatch: Dispatch<Work>,
    ) -> Result<(), BoxError> {
        work_through(&this, &item, &dispatch).await
    }

    async fn opened(this: Instance<Self>, lane: TrayHandle<Work>) {
        probe(&this).opened(lane.id());
    }

    #[tray(map)]
    async fn scratch(_this: Instance<Self>, item: Infallible, _dispatch: Dispatch<Scratch>) {
        match item {}
    }

    /// S4.5
    #[tray]
    async fn relay(
        this: Instance<Self>,
        Item { n }: Item,
        dispatch: Dispatch<Relay>,
    ) -> Result<(), BoxError> {
        linger(&this).await?;
        let sink = this.tray(Self::SINK).await?;
        let outcome = dispatch.admit_once(("r", n), &sink, |sink| sink.queue.push(Item { n }))?;
        let mut relayed: Vec<(u64, pinned::Outcome)> =
            dispatch.entry("relayed")?.unwrap_or_default();
        relayed.retain(|(known, _)| *known != n);
        relayed.push((n, outcome));
        dispatch.set_entry("relayed", &relayed)?;
        durable(&this).await
    }

    #[tray]
    async fn sink(
        this: Instance<Self>,
        Item { n }: Item,
        dispatch: Dispatch<Sink>,
    ) -> Result<(), BoxError> {
        let done = dispatch.read(|sink| *sink.done)?;
        log(&dispatch, done, n)?;
        dispatch.update(|sink| sink.done.set(done + 1))?;
        durable(&this).await
    }
}

/// S4.3. Each step is a segment of its own, which a crash may come after.
async fn work_through(
    this: &Instance<Desk>,
    &Item { n }: &Item,
    dispatch: &Dispatch<Work>,
) -> Result<(), BoxError> {
    let probe = probe(this);
    probe.step(n);
    if dispatch.state::<Stage>()?.is_none() {
        dispatch.set_state(&Stage::Taking)?;
    }
    let fed = dispatch.update(|work| work.feed.take_now(1))??;
    if fed != [Item { n }] {
        probe.complain("S5.12", format!("item {n} was fed {fed:?}"));
    }
    dispatch.set_state(&Stage::Took { n })?;
    let all = dispatch.update(|work| work.steer.take_all().len())?;
    dispatch.update(|work| work.steer.untake(all))??;
    let mut steers = dispatch.update(|work| work.steer.take_now(1))??;
    dispatch.update(|work| {
        let rest: Vec<Steer> = work.steer.iter().cloned().collect();
        work.steer.assign(rest);
    })?;
    steers.extend(dispatch.update(|work| {
        let own = work.steer.iter().take_while(|steer| steer.n == n).count();
        work.steer.take_now(own)
    })??);
    let mut steered: Vec<Steered> = dispatch.entry("steered")?.unwrap_or_default();
    steered.retain(|known| known.n != n);
    steered.push(Steered { n, steers });
    dispatch.set_entry("steered", &steered)?;
    let done = dispatch.read(|work| *work.done)?;
    log(dispatch, done, n)?;
    dispatch.update(|work| work.done.set(done + 1))?;
    durable(this).await?;
    probe.step(n);
    Ok(())
}

/// Writes the run at its place in the log; what a crash left behind that place goes.
fn log<W: Tray>(dispatch: &Dispatch<W>, done: u64, n: u64) -> Result<(), TrayError> {
    let mut log: Vec<Run> = dispatch.entry("log")?.unwrap_or_default();
    log.truncate(usize::try_from(done).unwrap_or(usize::MAX));
    let attempts = dispatch.attempts();
    log.push(Run { n, attempts });
    dispatch.set_entry("log", &log)
}

async fn durable(this: &Instance<Desk>) -> Result<(), BoxError> {
    let frontier = this.context().frontier()?;
    let durable: Result<(), FrontierError> = frontier.wait().await;
    Ok(durable?)
}

/// For a while that the seed draws: after a crash the sink may be done with an item by the time that it is relayed again.
async fn linger(this: &Instance<Desk>) -> Result<(), BoxError> {
    let ctx = this.context();
    let seconds = ctx.domain().rng("relay")?.uniform(0.0..0.1);
    ctx.domain().sleep(Duration::from_secs_f64(seconds)).await;
    Ok(())
}

fn probe(this: &Instance<Desk>) -> Probe {
    let probe = this.context().state::<Probe>();
    Probe::clone(&probe.expect("every worker of the sweep has one"))
}
