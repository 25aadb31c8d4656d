//! Instances with a tray, in this process, and admissions to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinned::durability::StateStore;
use pinned::{
    BoxError, Dispatch, Instance, PersistentQueue, PinnedWorker, RunningWorker, Tray, TrayHandle,
    pinned_api,
};
use tokio::sync::Semaphore;

use crate::{Result, counting::Counts, pinned_server::options};

/// A queue of texts.
#[derive(Tray)]
pub struct Inbox {
    /// What is to be handled.
    pub queue: PersistentQueue<String>,
}

/// An instance with one tray, whose handler does as [`Handling`] says.
pub struct Mailbox {
    /// Each permit lets a held handler end.
    steps: Arc<Semaphore>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            steps: Arc::new(Semaphore::new(0)),
        }
    }
}

#[pinned_api]
impl Mailbox {
    #[tray]
    async fn inbox(
        this: Instance<Self>,
        _item: String,
        _dispatch: Dispatch<Inbox>,
    ) -> Result<(), BoxError> {
        match Handling::of(this.id()) {
            Handling::Handled => {}
            Handling::Slow => tokio::time::sleep(SLOW).await,
            Handling::Held | Handling::Replaced => {
                let steps = Arc::clone(&this.read().await?.steps);
                steps.acquire().await?.forget();
            }
        }
        Ok(())
    }
}

/// How long a slow handler takes: longer than any round trip that is measured.
const SLOW: Duration = Duration::from_millis(3);

/// What becomes of the items that are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// The handler ends when [`Opened::step`] lets it. Until then nothing but the admissions reaches the store, and the
    /// queue grows.
    Held,
    /// As [`Handling::Held`], and each item takes the place of the one before, so that the row stays short.
    Replaced,
    /// The handler does nothing: takes and acknowledgements reach the store as well.
    Handled,
    /// The handler takes its time.
    Slow,
}

impl Handling {
    const ALL: [Self; 4] = [Self::Held, Self::Replaced, Self::Handled, Self::Slow];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Replaced => "replaced",
            Self::Handled => "handled",
            Self::Slow => "slow",
        }
    }

    /// Ids begin with it.
    fn of(id: &str) -> Self {
        let named = |handling: &Self| id.starts_with(handling.name());
        Self::ALL.into_iter().find(named).unwrap_or(Self::Handled)
    }
}

/// A live instance and its tray.
pub struct Opened {
    instance: Instance<Mailbox>,
    /// Where admissions go.
    pub tray: TrayHandle<Inbox>,
}

impl Opened {
    /// Admits `item` and waits until that is durable.
    ///
    /// # Errors
    /// When the instance ended.
    pub async fn admit(&self, item: &str) -> Result<()> {
        let admitted = self.tray.admit(|inbox| inbox.queue.push(item.to_owned()))?;
        Ok(admitted.await?)
    }

    /// Lets one held handler end.
    ///
    /// # Errors
    /// When the instance ended.
    pub async fn step(&self) -> Result<()> {
        self.instance.read().await?.steps.add_permits(1);
        Ok(())
    }

    /// Waits until at most `left` items are queued, the row says so, and all of it is durable in the store that counts.
    ///
    /// # Errors
    /// When the instance ended.
    pub async fn handled_down_to(&self, left: usize, counts: &Counts) -> Result<()> {
        loop {
            let next = counts.next_end();
            let queued = self.tray.read(|inbox| inbox.queue.len())?;
            if queued <= left && (queued > 0 || !self.tray.is_marked()?) {
                return Ok(self.instance.context().frontier()?.wait().await?);
            }
            next.await;
        }
    }
}

/// A worker over a store, without a server.
pub struct Mailboxes {
    running: RunningWorker,
    turns: u32,
}

impl Mailboxes {
    /// Starts it.
    ///
    /// # Errors
    /// When the store cannot be prepared.
    pub async fn start(store: impl StateStore) -> Result<Self> {
        let worker = PinnedWorker::builder()
            .host_with::<Mailbox>(options().namespace("/mailboxes"))
            // Those that never end keep theirs.
            .max_concurrent_dispatches(1_000_000)
            .store(store)
            .build()?;
        Ok(Self {
            running: worker.run_lifespan().await?,
            turns: 0,
        })
    }

    /// Durable admissions per second: `instances` tasks, each with one admission of `item` on its way.
    ///
    /// The instances are new with each turn, and live before it begins.
    ///
    /// # Errors
    /// When an admission fails.
    pub async fn rate(
        &mut self,
        handling: Handling,
        instances: usize,
        item: &str,
        turn: Duration,
    ) -> Result<f64> {
        self.turns += 1;
        let mut opened = Vec::new();
        for instance in 0..instances {
            let id = format!("{}-{instance}", self.turns);
            opened.push(self.open(handling, &id).await?);
        }
        let start = Instant::now();
        let end = start + turn;
        let tasks: Vec<_> = opened
            .into_iter()
            .map(|opened| tokio::spawn(admit_until(end, opened.tray, handling, item.to_owned())))
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += task.await?.map_err(|error| error.to_string())?;
        }
        Ok(admitted as f64 / start.elapsed().as_secs_f64())
    }

    /// An instance whose items are handled so, and its tray, with nothing of them left to write.
    ///
    /// # Errors
    /// When it cannot be activated.
    pub async fn open(&self, handling: Handling, id: &str) -> Result<Opened> {
        let host = self
            .running
            .worker()
            .hosted::<Mailbox>()
            .ok_or("hosted above")?;
        let instance = host.instance(&format!("{}-{id}", handling.name())).await?;
        let tray = instance.tray(Mailbox::INBOX).await?;
        // The new row.
        instance.context().frontier()?.wait().await?;
        Ok(Opened { instance, tray })
    }
}

async fn admit_until(
    end: Instant,
    tray: TrayHandle<Inbox>,
    handling: Handling,
    item: String,
) -> Result<u64, BoxError> {
    let mut admitted = 0;
    while Instant::now() < end {
        // No two alike: what does not change a row is not written.
        let number = format!("{admitted:08}");
        let item = format!("{number}{}", item.get(number.len()..).unwrap_or(""));
        let receipt = tray.admit(|inbox| match handling {
            Handling::Replaced => inbox.queue.assign([item]),
            Handling::Held | Handling::Handled | Handling::Slow => inbox.queue.push(item),
        })?;
        receipt.await?;
        admitted += 1;
    }
    Ok(admitted)
}
