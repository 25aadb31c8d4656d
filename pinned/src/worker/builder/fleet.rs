//! What a worker in a fleet is told, and its way to the control plane (W1.1, W1.2).

use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry::{Secret, Takeover};

use super::WorkerBuilder;
use crate::api::chain::OpenCalls;
use crate::domain::Domain;
use crate::error::Result;
use crate::fleet::{
    http::{HttpClient, HttpDataPlane},
    registration::Registration,
    remote::Remote,
    settings::Membership,
    transport::{ControlPlane, DataPlane},
};
use crate::lease::Lease;
use crate::worker::environment::Environment;

/// The way to the control plane.
pub(super) struct Joined {
    pub(super) registration: Arc<Registration>,
    /// One for the registry and for calls: each would read the system's certificates.
    client: HttpClient,
}

impl WorkerBuilder {
    /// Joins the fleet of the pinboard at `url` (`PINBOARD_URL`), which knows this worker by `token`
    /// (`PINBOARD_TOKEN`). Needs [`WorkerBuilder::advertise_url`].
    pub fn pinboard(mut self, url: impl Into<String>, token: impl Into<String>) -> Self {
        self.fleet.url = Some(url.into());
        self.fleet.token = Some(Secret::new(token));
        self
    }

    /// Where pinboard reaches this worker (`ADVERTISE_URL`), such as `http://10.0.0.7:8000`.
    pub fn advertise_url(mut self, url: impl Into<String>) -> Self {
        self.fleet.advertise_url = Some(url.into());
        self
    }

    /// The identity of the data of this worker, in hostname-aware mode; hosts may have another
    /// ([`HostOptions::env`](crate::HostOptions::env)).
    pub fn env(mut self, env: impl Into<String>) -> Self {
        self.fleet.env = Some(env.into());
        self
    }

    /// What a request from another hostname does to an id that lives here, in hostname-aware mode.
    pub fn takeover(mut self, takeover: Takeover) -> Self {
        self.fleet.takeover = Some(takeover);
        self
    }

    /// The epoch of this deployment (0): a higher one displaces a lower one whose settings disagree.
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.fleet.epoch = epoch;
        self
    }

    /// How often the control plane hears of this worker (3 s).
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.fleet.heartbeat_interval = interval;
        self
    }

    /// How much memory is free, in MiB, asked before each heartbeat; by default what the control group and the
    /// machine have left. New ids go where there is more.
    pub fn headroom(mut self, probe: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.fleet.headroom = Arc::new(probe);
        self
    }

    /// Reaches the control plane by other ways than HTTP: for tests that stand in for it. Needs
    /// [`WorkerBuilder::advertise_url`] all the same.
    #[doc(hidden)]
    pub fn control_plane(mut self, plane: Arc<dyn ControlPlane>) -> Self {
        self.control_plane = Some(plane);
        self
    }

    /// Reaches instances of other workers by other ways than HTTP: for tests that stand in for the control plane.
    #[doc(hidden)]
    pub fn data_plane(mut self, plane: Arc<dyn DataPlane>) -> Self {
        self.data_plane = Some(plane);
        self
    }

    /// What the worker says of itself to a control plane, where it is told of one.
    pub(super) fn membership(
        &mut self,
        environment: &Environment,
        hostname: Option<&str>,
    ) -> Result<Option<Membership>> {
        environment.fill_in_fleet(&mut self.fleet);
        let placed = self.fleet.url.is_some() || self.control_plane.is_some();
        self.fleet.check(hostname, placed)?;
        placed.then(|| self.fleet.membership(hostname)).transpose()
    }

    /// The registration of `membership`, which has not begun yet.
    pub(super) fn join(
        &mut self,
        membership: Membership,
        secret: &str,
        domain: &Domain,
        lease: &Lease,
    ) -> Result<Joined> {
        let client = HttpClient::new()?;
        let plane = match self.control_plane.take() {
            Some(plane) => plane,
            None => self.fleet.connect(client.clone())?,
        };
        Ok(Joined {
            registration: Registration::new(membership, secret, domain, lease, plane),
            client,
        })
    }

    /// The way to instances of other workers.
    pub(super) fn remote(
        &mut self,
        joined: Joined,
        hostname: Option<&str>,
        calls: &Arc<OpenCalls>,
    ) -> Result<Option<Remote>> {
        let plane = match (self.data_plane.take(), &self.fleet.url) {
            (Some(plane), _) => plane,
            (None, Some(url)) => Arc::new(HttpDataPlane::new(joined.client, url)?),
            (None, None) => return Ok(None),
        };
        let calls = Arc::clone(calls);
        let remote = Remote::new(plane, hostname, joined.registration, calls);
        Ok(Some(remote))
    }
}
