use pinned::{
    BoxError, Context, Dispatch, Instance, Persistent, PersistentOutbox, PersistentQueue, PinnedApi,
    Refusal, Tray, TrayHandle, TrayLifecycle, TraySource, inbox, pinned_api, route,
};

type Letters = PersistentQueue<String>;

#[derive(Tray)]
#[tray(version = -1, max_attempts = 3, dispatch_timeout = "1m30s", drain_on_eviction = true)]
struct Mail {
    outgoing: PersistentQueue<String>,
    sent: Persistent<u64>,
    #[tray(initial = 100)]
    credit: Persistent<u32>,
    sending: PersistentOutbox<String>,
    #[tray(skip)]
    cache: Vec<String>,
}

#[inbox]
impl Mail {
    /// Puts a letter into the queue.
    pub fn enqueue(&mut self, letter: String) {
        self.outgoing.push(letter);
    }

    pub fn paid(&mut self, mut credit: u32, r#for: Option<String>) -> Result<(), BoxError> {
        credit += r#for.map_or(0, |_| 1);
        self.credit.set(credit);
        Ok(())
    }

    pub fn nothing(&mut self) -> Result<(), std::fmt::Error> {
        self.cache.clear();
        Ok(())
    }
}

#[derive(Tray)]
#[tray(lifecycle)]
struct Sorted {
    #[tray(items)]
    one: Letters,
    two: Letters,
    r#type: Persistent<Option<u8>>,
}

impl TrayLifecycle for Sorted {
    async fn opened(tray: TrayHandle<Self>) -> Result<(), BoxError> {
        tray.read(|sorted| sorted.two.len())?;
        Ok(())
    }
}

#[derive(Tray)]
#[tray(source)]
struct Ticks {
    count: Persistent<u64>,
}

impl TraySource for Ticks {
    type Item = u64;

    fn next(&mut self) -> Result<Option<u64>, BoxError> {
        Ok((*self.count < 3).then_some(*self.count))
    }

    fn ack(&mut self) {
        self.count.update(|count| *count += 1);
    }
}

#[derive(Tray)]
#[tray(source)]
struct Bare {}

impl TraySource for Bare {
    type Item = ();

    fn next(&mut self) -> Result<Option<()>, BoxError> {
        Ok(None)
    }

    fn ack(&mut self) {}
}

#[derive(Default)]
struct Office {
    open: u64,
}

#[pinned_api("/offices")]
impl Office {
    /// Sends what is in the queue.
    #[tray]
    async fn mail(this: Instance<Self>, letter: String, dispatch: Dispatch<Mail>) -> Result<(), BoxError> {
        let _ = (this.read().await?.open, letter, dispatch.attempts());
        Ok(())
    }

    #[tray(map, always_open, on_open = Self::opened, on_close = Self::closed, on_open = Self::opened)]
    async fn r#type(_this: Instance<Office>, _letter: String, _dispatch: Dispatch<Sorted>) {}

    #[tray(map)]
    async fn ticks(_: Instance<Self>, tick: u64, dispatch: Dispatch<Ticks>) -> Result<u64, Refusal> {
        drop(dispatch);
        Ok(tick)
    }

    #[tray(on_close = Self::bare_closed)]
    pub async fn bare(_: Instance<Self>, (): (), _: Dispatch<Bare>) {}

    async fn bare_closed(_: Instance<Self>, _: TrayHandle<Bare>) {}

    async fn opened(this: Instance<Self>, tray: TrayHandle<Sorted>) {
        let _ = (this, tray.id());
    }

    async fn closed(_: Instance<Self>, _: TrayHandle<Sorted>) -> Result<(), BoxError> {
        Ok(())
    }

    #[route::post("/letters", durable)]
    async fn post(this: Instance<Self>, letter: String) -> Result<String, String> {
        let posted = Self::admit(this, letter).await;
        posted.map_err(|error| error.to_string())
    }

    async fn admit(this: Instance<Self>, letter: String) -> Result<String, BoxError> {
        this.tray(Self::MAIL).await?.enqueue(letter)?.await?;
        let _unconfirmed = this.tray(Office::MAIL).await?.paid(1, None)?;
        this.trays(Self::TYPE)?.get_or_create("a").await?.kick()?.await?;
        Ok(this.tray(Self::BARE).await?.id().to_owned())
    }

    #[route::get("/ticks", auth = none, durable)]
    async fn count(&self, ctx: Context) -> String {
        let nothing = match ctx.tray(Self::MAIL).await {
            Ok(mail) => mail.nothing(),
            Err(error) => Err(error),
        };
        let live = ctx.trays(Self::TICKS).map(|ticks| ticks.live());
        format!("{live:?}, {}", nothing.is_ok())
    }
}

fn main() {
    assert!(Office::needs_store());
    let names: Vec<_> = Office::TRAYS.iter().map(|tray| tray.name()).collect();
    assert_eq!(names, ["mail", "type", "ticks", "bare"]);
    assert_eq!(Office::TYPE.name(), "type");
    assert!(Office::routes().all(|route| route.is_durable()));
    let settings = Mail::SETTINGS;
    assert_eq!(
        (settings.version, settings.max_attempts, settings.dispatch_timeout.as_secs()),
        (-1, 3, 90)
    );
    let mut sorted = Sorted::declared();
    let mut fields = Vec::new();
    sorted.fields(&mut |name, _| fields.push(name));
    assert_eq!(fields, ["one", "two", "type"]);
    assert_eq!(*Mail::declared().credit, 100);
}
