//! What a node is made of, and how the parts know each other.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use pinned_domain::{Domain, ErrorChain};

use super::background::Background;
use super::figures::{Counted, OpenConnections};
use super::registry_store::NodeStore;
use crate::events::Events;
use crate::metrics::names;
use crate::operators::{NodeState, Operators, OperatorsOptions, Readiness};
use crate::passport::{Passport, Resolve};
use crate::placement::Placement;
use crate::proxy::Proxy;
use crate::scanner::{EpochFloor, MarkedRows, PlacedFleet, SCANNER, Scanner};
use crate::server::{Lifecycle, Server, ServerOptions};
use crate::sessions::{Registry, Sessions, SessionsOptions};
use crate::settings::Settings;
use crate::store::{RegistryStore, StoreError};
use crate::upstream::{Connector, Fetcher};
use crate::workers::{SWEEPER, Sweeper, Workers};
use crate::{operators, sessions};

/// How soon a store that does not answer is asked again while the node starts.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How long a store may take to hear that the node goes.
const GOODBYE: Duration = Duration::from_secs(2);

/// What a node is given.
pub(super) struct Given {
    pub(super) store: Arc<dyn RegistryStore>,
    /// Whether the store hands the times of its operations to the recorder itself.
    pub(super) is_counted: bool,
    pub(super) passport: Passport,
    pub(super) settings: Settings,
    pub(super) domain: Domain,
    pub(super) connector: Connector,
    pub(super) fetcher: Arc<dyn Fetcher>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(super) rows: Option<Arc<dyn MarkedRows>>,
    /// How the node is called among those of its fleet.
    pub(super) name: Arc<str>,
}

/// What a node is made of.
pub(super) struct Parts {
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) passport: Passport,
    pub(super) settings: Arc<Settings>,
    pub(super) domain: Domain,
    pub(super) workers: Workers,
    pub(super) placement: Placement,
    pub(super) events: Events,
    pub(super) sessions: Arc<Sessions>,
    pub(super) operators: Arc<Operators>,
    pub(super) readiness: Readiness,
    pub(super) connections: Arc<OpenConnections>,
    sweeper: Arc<Sweeper>,
    scanner: Option<Arc<Scanner>>,
}

impl Parts {
    pub(super) fn new(given: Given) -> Self {
        let Given {
            passport,
            settings,
            domain,
            connector,
            fetcher,
            name,
            ..
        } = given;
        let floor = EpochFloor::default();
        let store = NodeStore::new(given.store, given.is_counted, floor.clone(), domain.clone());
        let round_trips = store.times();
        let store: Arc<dyn RegistryStore> = Arc::new(store);
        let events = Events::new();
        let workers =
            Workers::with_connector(Arc::clone(&store), domain.clone(), &settings, connector);
        let placement = Placement::new(
            Arc::clone(&store),
            workers.clone(),
            events.clone(),
            domain.clone(),
            &settings,
        );
        let sweeper = Sweeper::new(
            Arc::clone(&store),
            workers.clone(),
            events.clone(),
            domain.clone(),
            &settings,
            Arc::clone(&name),
        );
        let scanner = given.rows.map(|rows| {
            let fleet = PlacedFleet {
                store: Arc::clone(&store),
                workers: workers.clone(),
                placement: placement.clone(),
                floor,
                fetcher: Arc::clone(&fetcher),
            };
            Arc::new(Scanner::new(
                Arc::clone(&store),
                rows,
                Arc::new(fleet),
                &settings,
                name,
                domain.clone(),
            ))
        });
        let settings = Arc::new(settings);
        let registry = Registry {
            store: Arc::clone(&store),
            passport: passport.clone(),
            workers: workers.clone(),
            fetcher,
            events: events.clone(),
            settings: Arc::clone(&settings),
            domain: domain.clone(),
        };
        let readiness = Readiness::default();
        let connections = Arc::new(OpenConnections::default());
        let leases = match scanner {
            Some(_) => vec![SWEEPER, SCANNER],
            None => vec![SWEEPER],
        };
        let operators = Operators::new(OperatorsOptions {
            registry: registry.clone(),
            figures: Arc::new(Counted {
                placement: placement.clone(),
                round_trips,
                connections: Arc::clone(&connections),
            }),
            render_metrics: given.render_metrics,
            readiness: readiness.clone(),
            leases,
        });
        let sessions = Sessions::new(SessionsOptions {
            registry,
            resolver: given.resolver,
        });
        metrics::gauge!(names::LICENSE_EPOCH).set(settings.epoch as f64);
        Self {
            store,
            passport,
            settings,
            domain,
            workers,
            placement,
            events,
            sessions,
            operators,
            readiness,
            connections,
            sweeper: Arc::new(sweeper),
            scanner,
        }
    }

    /// What clients talk to.
    pub(super) fn server(&self) -> Server {
        let proxy = Proxy::new(
            self.placement.clone(),
            self.workers.clone(),
            self.passport.clone(),
            self.domain.clone(),
        );
        let server = Server::new(
            proxy,
            self.router(),
            Lifecycle::new(),
            self.domain.clone(),
            ServerOptions::from(&*self.settings),
        );
        self.connections.are_of(server.clone());
        server
    }

    /// What is not the data plane: `/registry/*`, `/healthz`, `/readyz`, `/metrics`.
    fn router(&self) -> Router {
        let sessions = sessions::router(Arc::clone(&self.sessions));
        sessions.merge(operators::router(Arc::clone(&self.operators)))
    }

    /// Makes the store ready, however long it takes to answer, reads the fleet's state, and begins what runs besides answering.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub(super) async fn begin(&self, background: &Background) -> Result<(), StoreError> {
        self.await_store().await?;
        self.run(background);
        self.passport.warm_up();
        // Unless it is known who lives, every id would look free to be asked about; if it fails, the readings go on.
        let _ = self.workers.refresh_now().await;
        self.readiness.enter(NodeState::Serving);
        Ok(())
    }

    async fn await_store(&self) -> Result<(), StoreError> {
        let mut told = false;
        loop {
            match self.store.prepare().await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_transient() => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(
                            store = self.store.describe(),
                            error = %ErrorChain(&error),
                            "the registry store does not answer; waiting for it"
                        );
                    }
                    self.domain.sleep(ASK_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn run(&self, background: &Background) {
        let workers = self.workers.clone();
        background.keep("workers", move || {
            let workers = workers.clone();
            async move { workers.run().await }
        });
        let placement = self.placement.clone();
        background.keep("placement", move || {
            let placement = placement.clone();
            async move { placement.run().await }
        });
        let (events, store, domain) = (
            self.events.clone(),
            Arc::clone(&self.store),
            self.domain.clone(),
        );
        background.keep("events", move || {
            let (events, store, domain) = (events.clone(), Arc::clone(&store), domain.clone());
            async move { events.run(&*store, &domain).await }
        });
        let sweeper = Arc::clone(&self.sweeper);
        background.keep("sweeper", move || {
            let sweeper = Arc::clone(&sweeper);
            async move { sweeper.run().await }
        });
        if let Some(scanner) = self.scanner.clone() {
            background.keep("scanner", move || {
                let scanner = Arc::clone(&scanner);
                async move { scanner.run().await }
            });
        }
    }

    /// Hands over what other nodes would wait for, once nothing of this node runs any more.
    pub(super) async fn end(&self) {
        let goodbye = async {
            // Each of them also runs out by itself.
            let _ = self.events.flush(&*self.store).await;
            let _ = self.sweeper.stand_down().await;
            if let Some(scanner) = &self.scanner {
                scanner.stand_down().await;
            }
        };
        let _ = self.domain.timeout(GOODBYE, goodbye).await;
    }
}
