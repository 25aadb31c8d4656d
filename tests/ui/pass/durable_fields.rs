use pinned::{
    Context, Durable, Instance, Json, Persistent, PinnedApi, Refusal, SetupError, Stored, lifespan,
    pinned_api, route,
};

#[derive(Durable)]
struct Counter {
    count: Persistent<u64>,
    #[durable(initial = "nobody".to_owned())]
    owner: Persistent<String>,
    seen: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/increment", durable)]
    async fn increment(&mut self) -> Json<u64> {
        self.seen += 1;
        self.count.update(|count| *count += 1);
        Json(*self.count)
    }

    #[route::get("/owner")]
    async fn owner(&self) -> String {
        self.owner.clone()
    }
}

type Kept<T> = Persistent<T>;

#[derive(Durable)]
#[durable(setup)]
pub struct Account {
    pub(crate) balance: Persistent<i64>,
    #[durable]
    limit: Kept<u32>,
    currency: Currency,
}

pub struct Currency(String);

#[pinned_api("/accounts")]
impl Account {
    #[lifespan::setup]
    async fn setup(ctx: Context, stored: Stored<Self>) -> Result<Self, SetupError> {
        Ok(Self {
            balance: stored.balance,
            limit: stored.limit,
            currency: Currency(ctx.id().to_owned()),
        })
    }

    #[route::get("/")]
    async fn read(this: Instance<Self>) -> Result<String, Refusal> {
        let account = this.read().await?;
        Ok(format!("{} of {} {}", *account.balance, *account.limit, account.currency.0))
    }
}

#[derive(Durable)]
#[durable(setup)]
struct Named {
    name: Persistent<String>,
    #[durable(skip)]
    other: other::Persistent,
}

mod other {
    pub struct Persistent;
}

#[pinned_api]
impl Named {
    #[lifespan::setup]
    async fn setup(_ctx: Context, NamedStored { name }: NamedStored) -> Self {
        Self {
            name,
            other: other::Persistent,
        }
    }

    #[route::get("/")]
    async fn read(&self) -> String {
        let _ = &self.other;
        self.name.clone()
    }
}

#[derive(Default)]
struct Plain;

#[pinned_api]
impl Plain {
    #[route::get("/")]
    async fn read(&self) {}
}

#[derive(Default)]
struct Waits;

#[pinned_api]
impl Waits {
    #[route::get("/", durable, auth = none)]
    async fn read(&self) {}
}

fn main() {
    assert!(Counter::needs_store() && Account::needs_store() && Named::needs_store());
    assert!(Waits::needs_store());
    assert!(!Plain::needs_store());
    let mut stored = Account::declared();
    let mut names = Vec::new();
    Account::fields(&mut stored, &mut |name, _| names.push(name));
    assert_eq!(names, ["balance", "limit"]);
    assert_eq!(*Counter::declared().owner, "nobody");
    assert_eq!(format!("{stored:?}"), "AccountStored { .. }");
}
