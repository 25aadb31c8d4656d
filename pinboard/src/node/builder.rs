//! What a node is told before it starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Domain;
use pinned_wire::registry::Secret;
use tokio::net::TcpListener;

use super::parts::{Given, Parts};
use super::running::Serving;
use super::{Pinboard, StartError};
use crate::config::{Config, PostgresTarget, StoreConfig};
use crate::passport::{Passport, Resolve};
use crate::scanner::{MarkedRows, PostgresRows};
use crate::sessions::SystemResolver;
use crate::settings::Settings;
use crate::store::{MemoryStore, RedisStore, RedisUrl, RegistryStore, StoreOptions};
use crate::upstream::{self, Connector, Fetcher, HttpFetcher};

/// How long nothing new is placed on a dev node after its start, unless workers outlived it (P4.4).
const DEV_QUARANTINE: Duration = Duration::from_secs(2);

/// What a node is told before it starts; [`Pinboard::builder`] begins one.
#[must_use = "a node starts with `serve`"]
pub struct PinboardBuilder {
    store: Store,
    passport: Option<Passport>,
    token: Option<Secret>,
    settings: Settings,
    domain: Domain,
    rows: Option<Rows>,
    connector: Connector,
    fetcher: Option<Arc<dyn Fetcher>>,
    resolver: Arc<dyn Resolve>,
    render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

enum Store {
    Memory,
    Redis(RedisUrl),
    Given(Arc<dyn RegistryStore>),
}

enum Rows {
    Postgres(Box<PostgresTarget>),
    Given(Arc<dyn MarkedRows>),
}

/// A node that is made of its parts and does nothing yet.
pub(super) struct Assembled {
    pub(super) parts: Parts,
    pub(super) token: Option<Secret>,
}

impl PinboardBuilder {
    pub(super) fn new() -> Self {
        Self {
            store: Store::Memory,
            passport: None,
            token: None,
            settings: Settings::default(),
            domain: Domain::real(),
            rows: None,
            connector: Connector::default(),
            fetcher: None,
            resolver: Arc::new(SystemResolver::new()),
            render_metrics: Arc::new(String::new),
        }
    }

    /// As the environment says it.
    pub fn config(mut self, config: &Config) -> Self {
        self.store = match &config.store {
            StoreConfig::Memory => Store::Memory,
            StoreConfig::Redis(url) => Store::Redis(url.clone()),
        };
        self.passport = Some(config.passport.clone());
        self.rows = config.scanner.clone().map(Box::new).map(Rows::Postgres);
        self.settings = config.settings.clone();
        self
    }

    /// Keeps the fleet in this process, for one dev node; this is so unless something else is said.
    pub fn memory(mut self) -> Self {
        self.store = Store::Memory;
        self
    }

    /// Shares the fleet with other nodes, in a Redis.
    pub fn redis(mut self, url: RedisUrl) -> Self {
        self.store = Store::Redis(url);
        self
    }

    /// Keeps the fleet in a store of the caller's own. Its options must agree with the settings.
    pub fn store(mut self, store: Arc<dyn RegistryStore>) -> Self {
        self.store = Store::Given(store);
        self
    }

    /// Who may do what.
    pub fn passport(mut self, passport: Passport) -> Self {
        self.passport = Some(passport);
        self
    }

    /// The token of the one key that there is without a [`passport`](Self::passport), on a node that keeps the fleet in memory: it may
    /// do everything. A fresh one is made where none is given; see [`Pinboard::token`].
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Secret::new(token));
        self
    }

    /// Lease time, sweep interval and the like. Whether it is a dev node follows from its store.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Where time, tasks and randomness come from.
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = domain;
        self
    }

    /// Looks for durable work in a PostgreSQL (P8).
    pub fn scanner(mut self, target: PostgresTarget) -> Self {
        self.rows = Some(Rows::Postgres(Box::new(target)));
        self
    }

    /// Looks for durable work in a list of the caller's own (P8).
    pub fn marked_rows(mut self, rows: Arc<dyn MarkedRows>) -> Self {
        self.rows = Some(Rows::Given(rows));
        self
    }

    /// Makes the connections to workers: for requests, and for challenges and the like unless there is a
    /// [`fetcher`](Self::fetcher) for those.
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connector = connector;
        self
    }

    /// Makes the small requests to workers: challenges, stats, wakes.
    pub fn fetcher(mut self, fetcher: Arc<dyn Fetcher>) -> Self {
        self.fetcher = Some(fetcher);
        self
    }

    /// Finds the addresses of workers that advertise names.
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Renders the text of `/metrics`, which is empty otherwise: the recorder is the program's own. Install it before this.
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.render_metrics = Arc::new(render);
        self
    }

    /// Serves on a listener, on the runtime that this is called in; returns once the node is ready.
    ///
    /// While the registry store does not answer it waits, and `/readyz` says so.
    ///
    /// # Errors
    ///
    /// The node cannot be made of what it was told, or its store cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what has begun.
    pub async fn serve(mut self, listener: TcpListener) -> Result<Pinboard, StartError> {
        // One runtime has one lane.
        self.settings.lanes = 1;
        let assembled = self.assemble()?;
        Serving::on_listener(assembled, listener)?.ready().await
    }

    /// Listens nowhere, and serves what [`Pinboard::serve_connection`] is handed; returns once the node is ready.
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what has begun.
    pub async fn start(mut self) -> Result<Pinboard, StartError> {
        // Whoever polls the connections is one runtime.
        self.settings.lanes = 1;
        Serving::off_line(self.assemble()?).ready().await
    }

    /// Serves on an address with threads of its own, as many as the settings say lanes. It listens at once, and
    /// [`Serving::ready`] ends once the node is ready.
    ///
    /// # Errors
    ///
    /// The node cannot be made of what it was told, or the address cannot be listened on.
    pub fn listen(self, address: SocketAddr) -> Result<Serving, StartError> {
        Serving::on_address(self.assemble()?, address)
    }

    fn assemble(self) -> Result<Assembled, StartError> {
        let Self {
            store,
            passport,
            token,
            mut settings,
            domain,
            rows,
            connector,
            fetcher,
            ..
        } = self;
        settings.dev = matches!(store, Store::Memory);
        let (passport, token) = match passport {
            Some(passport) => (passport, None),
            None if settings.dev => {
                let token = token.unwrap_or_else(|| Secret::new(domain.token_hex(24)));
                (Passport::dev(token.expose())?, Some(token))
            }
            None => return Err(StartError::NoPassport),
        };
        let options = StoreOptions {
            lease_ttl: settings.lease_ttl,
            quarantine: if settings.dev {
                settings.lease_ttl.min(DEV_QUARANTINE)
            } else {
                settings.lease_ttl
            },
            shards: settings.shards,
        };
        let is_counted = matches!(store, Store::Redis(_));
        let store: Arc<dyn RegistryStore> = match store {
            Store::Memory => Arc::new(MemoryStore::new(options, domain.clone())),
            Store::Redis(url) => Arc::new(RedisStore::open(&url, options, &domain)?),
            Store::Given(store) => store,
        };
        let rows = rows.map(|rows| -> Arc<dyn MarkedRows> {
            match rows {
                Rows::Postgres(target) => Arc::new(PostgresRows::new(*target, domain.clone())),
                Rows::Given(rows) => rows,
            }
        });
        let fetcher = fetcher.unwrap_or_else(|| {
            let (domain, connector) = (domain.clone(), connector.clone());
            Arc::new(HttpFetcher::with(
                domain,
                connector,
                upstream::SystemResolver,
            ))
        });
        let name = name(&domain).into();
        let parts = Parts::new(Given {
            store,
            is_counted,
            passport,
            settings,
            domain,
            connector,
            fetcher,
            resolver: self.resolver,
            render_metrics: self.render_metrics,
            rows,
            name,
        });
        Ok(Assembled { parts, token })
    }
}

/// What tells one node from another, to people and in the fleet's leases.
fn name(domain: &Domain) -> String {
    let host = gethostname::gethostname();
    let host: String = host
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c))
        .take(64)
        .collect();
    // Two nodes may be on one host, and two containers may have one name.
    format!("{host}-{}", domain.token_hex(4))
}
