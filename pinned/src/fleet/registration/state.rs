//! A registration: what it knows, its start and its end, and what the worker asks of it.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pinned_wire::registry::{DEREGISTER_PATH, Deregister, Secret};
use tokio::sync::{Notify, watch};

use crate::domain::{Domain, TaskHandle};
use crate::fleet::calls::{Calls, PATIENCE};
use crate::fleet::echo::DrainEcho;
use crate::fleet::releases::{Queued, Releases};
use crate::fleet::session::Session;
use crate::fleet::settings::Membership;
use crate::fleet::standing::{Standing, Standings};
use crate::fleet::transport::ControlPlane;
use crate::host::hosts::Hosts;
use crate::lease::Lease;

/// The registration of one worker, shared by all its hosts.
pub(crate) struct Registration {
    pub(super) membership: Membership,
    pub(super) client_id: String,
    pub(super) secret: Secret,
    pub(super) lease: Lease,
    pub(super) calls: Calls,
    pub(super) session: Session,
    pub(super) standings: Standings,
    pub(super) releases: Releases,
    /// Hosts hold their worker's environment, and so this.
    pub(super) hosts: Mutex<Weak<Hosts>>,
    pub(super) echo: Mutex<DrainEcho>,
    /// Tells the loop to go on at once; kept when it is busy (W4.11).
    pub(super) wake: Notify,
    pub(super) task: Mutex<Option<TaskHandle<()>>>,
}

impl Registration {
    pub(crate) fn new(
        membership: Membership,
        secret: &str,
        domain: &Domain,
        lease: &Lease,
        plane: Arc<dyn ControlPlane>,
    ) -> Arc<Self> {
        Arc::new(Self {
            membership,
            client_id: domain.token_hex(16),
            secret: Secret::new(secret),
            lease: lease.clone(),
            calls: Calls::new(domain.clone(), plane),
            session: Session::new(),
            standings: Standings::default(),
            releases: Releases::new(),
            hosts: Mutex::default(),
            echo: Mutex::default(),
            wake: Notify::new(),
            task: Mutex::default(),
        })
    }

    /// The hosts that it speaks for, once they exist.
    pub(crate) fn attach(&self, hosts: &Arc<Hosts>) {
        *self.hosts.lock() = Arc::downgrade(hosts);
    }

    /// The worker process, as operators know it.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(crate) fn session_id(&self) -> Option<Arc<str>> {
        self.session.id()
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.session.is_registered()
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.session.is_superseded()
    }

    /// Why the last attempt to register failed; `None` when it did not.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.standings.refusal()
    }

    pub(crate) fn standings(&self) -> watch::Receiver<Standing> {
        self.standings.watch()
    }

    pub(crate) fn reregistrations(&self) -> u64 {
        self.session.reregistrations()
    }

    /// The answer to a challenge of the registry, if it is the latest (W10.2).
    pub(crate) fn answer(&self, challenge: &str) -> Option<Secret> {
        self.session.answer(challenge)
    }

    /// Begins to register, once every host has started (W1.4).
    pub(crate) fn start(self: &Arc<Self>) {
        if self.session.is_superseded() {
            return;
        }
        let mut task = self.task.lock();
        if task.is_none() {
            *task = Some(self.calls.domain.spawn(Arc::clone(self).run()));
        }
    }

    /// Ends the session and the loop, once nothing is left in the worker (W1.5, W3.16).
    pub(crate) async fn stop(&self) {
        self.finish_loop().await;
        let session = self.session.id();
        if let Some(session_id) = session {
            let body = Deregister {
                session_id: session_id.to_string(),
            };
            let outcome = self
                .calls
                .with_retries("deregister", DEREGISTER_PATH, &body, || {
                    "deregistering".to_owned()
                })
                .await;
            self.session.ended(outcome.is_ok());
        }
    }

    /// Lets the loop end with the call that is under way. A registration that is cut off may have begun a session that nobody ends,
    /// and a heartbeat beside a deregistration may begin another one: ids would go to it until its lease has run out.
    ///
    /// # Cancel safety
    ///
    /// The loop ends all the same.
    async fn finish_loop(&self) {
        self.session.close();
        self.wake.notify_one();
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && self
                .calls
                .domain
                .timeout(PATIENCE, &mut task)
                .await
                .is_err()
        {
            task.abort();
        }
    }

    /// Ends the loop without a word to anybody.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    /// Queues the release of a placement; the outcome comes when the send that takes it has ended.
    pub(in crate::fleet) fn queue_release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> Queued {
        self.releases.queue(namespace, id, epoch, &self.session)
    }

    /// Sends what releases wait, in a task of its own: whoever waits for one may give up, others' may be in the same send, and
    /// heartbeats must not wait for any.
    pub(in crate::fleet) fn send_releases(self: &Arc<Self>) {
        let registration = Arc::clone(self);
        self.calls.domain.spawn(async move {
            let Self {
                releases,
                calls,
                session,
                ..
            } = &*registration;
            releases.flush(calls, session).await;
        });
    }

    /// Tells the registry at once whether the worker drains of its own accord.
    pub(crate) fn set_draining(&self, draining: bool) {
        if self.session.set_draining(draining) {
            self.wake.notify_one();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("client_id", &self.client_id)
            .field("session", &self.session.id())
            .finish_non_exhaustive()
    }
}
