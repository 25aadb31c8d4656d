//! A worker's part in a fleet, where it is in one; without the feature `fleet` there is none to be in.

#[cfg(feature = "fleet")]
use std::io::{self, Write as _};
#[cfg(feature = "fleet")]
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use http::{HeaderMap, StatusCode};
use pinned_wire::registry::{CHALLENGE_PATH, Secret};
use serde::Deserialize;
use serde_json::json;

use super::PinnedWorker;
use super::probe::is_wedged;
use crate::api::refusal::{detail_response, not_found};
#[cfg(feature = "fleet")]
use crate::fleet::registration::Registration;
#[cfg(feature = "fleet")]
use crate::fleet::standing::Teller;

/// A worker's part in a fleet, where it is in one.
#[derive(Default)]
pub(super) struct Fleet {
    #[cfg(feature = "fleet")]
    registration: Option<Arc<Registration>>,
}

#[cfg(feature = "fleet")]
impl Fleet {
    pub(super) fn new(registration: Option<Arc<Registration>>) -> Self {
        Self { registration }
    }

    pub(super) fn start(&self) {
        if let Some(registration) = &self.registration {
            registration.start();
        }
    }

    pub(super) async fn stop(&self) {
        if let Some(registration) = &self.registration {
            registration.stop().await;
        }
    }

    pub(super) fn abort(&self) {
        if let Some(registration) = &self.registration {
            registration.abort();
        }
    }

    pub(super) fn set_draining(&self, draining: bool) {
        if let Some(registration) = &self.registration {
            registration.set_draining(draining);
        }
    }

    /// Registered, where it has to be.
    pub(super) fn is_in(&self) -> bool {
        self.registration
            .as_ref()
            .is_none_or(|registration| registration.is_registered())
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.registration
            .as_ref()
            .is_some_and(|registration| registration.is_superseded())
    }

    pub(super) fn reregistrations(&self) -> u64 {
        self.registration
            .as_ref()
            .map_or(0, |registration| registration.reregistrations())
    }

    /// Says on standard error why the worker does not come up, where it does not, and that it has; never ends.
    ///
    /// Apart from the log: a program without a subscriber would be silent, and look as if it served.
    pub(super) async fn tell(&self) {
        if let Some(registration) = &self.registration {
            let (mut standings, mut teller) = (registration.standings(), Teller::default());
            loop {
                let line = teller.line(&standings.borrow_and_update());
                if let Some(line) = line {
                    // Unlike `eprintln!`, which ends the server with a panic once nobody reads its standard error any more.
                    let _ = writeln!(io::stderr(), "{line}");
                }
                if standings.changed().await.is_err() {
                    break;
                }
            }
        }
        std::future::pending().await
    }

    fn refusal(&self) -> Option<Arc<str>> {
        self.registration.as_ref()?.refusal()
    }

    fn client_id(&self) -> Option<&str> {
        self.registration
            .as_ref()
            .map(|registration| registration.client_id())
    }

    fn session_id(&self) -> Option<Arc<str>> {
        self.registration.as_ref()?.session_id()
    }

    /// `None`: there is no control plane to ask.
    fn answer(&self, challenge: &str) -> Option<Option<Secret>> {
        let registration = self.registration.as_ref()?;
        Some(registration.answer(challenge))
    }
}

#[cfg(not(feature = "fleet"))]
impl Fleet {
    pub(super) fn start(&self) {}

    pub(super) async fn stop(&self) {}

    pub(super) fn abort(&self) {}

    pub(super) fn set_draining(&self, _draining: bool) {}

    pub(super) fn is_in(&self) -> bool {
        true
    }

    pub(super) fn is_superseded(&self) -> bool {
        false
    }

    pub(super) fn reregistrations(&self) -> u64 {
        0
    }

    pub(super) async fn tell(&self) {
        std::future::pending().await
    }

    fn refusal(&self) -> Option<std::sync::Arc<str>> {
        None
    }

    fn client_id(&self) -> Option<&str> {
        None
    }

    fn session_id(&self) -> Option<std::sync::Arc<str>> {
        None
    }

    fn answer(&self, _challenge: &str) -> Option<Option<Secret>> {
        None
    }
}

impl PinnedWorker {
    /// The name under which operators find this worker (`pinboard workers`); `None` in local mode. A new one in each
    /// process.
    pub fn client_id(&self) -> Option<&str> {
        self.core.fleet.client_id()
    }

    /// The session that the control plane knows this worker by at the moment.
    pub fn session_id(&self) -> Option<std::sync::Arc<str>> {
        self.core.fleet.session_id()
    }

    /// Why the last attempt to register with the control plane failed, such as a token that it does not know; `None` when it
    /// did not fail, and in local mode. That it is told to come again later (503) counts from the third time in a row on.
    /// [`PinnedWorker::serve`] says so on standard error too.
    pub fn registration_failure(&self) -> Option<std::sync::Arc<str>> {
        self.core.fleet.refusal()
    }

    /// Whether a worker with a higher epoch has displaced this one for good: it serves nothing any more, and does not
    /// register again (W4.8).
    pub fn is_superseded(&self) -> bool {
        self.core.fleet.is_superseded()
    }
}

#[derive(Deserialize)]
struct Question {
    challenge: Option<String>,
}

/// The route by which the registry finds out that the advertised URL is this worker's own (W10.2).
pub(super) fn challenge_route(router: Router<PinnedWorker>) -> Router<PinnedWorker> {
    router.route(CHALLENGE_PATH, routing::get(challenge))
}

async fn challenge(
    State(worker): State<PinnedWorker>,
    Query(question): Query<Question>,
    headers: HeaderMap,
) -> Response {
    let fleet = &worker.core.fleet;
    if fleet.client_id().is_none() {
        return not_found();
    }
    if !worker.may_ask(&headers) {
        return detail_response(StatusCode::FORBIDDEN, "invalid proxy secret");
    }
    // What pinboard takes for a URL that does not answer: nothing new is placed here, and what lives here stays (P2.3, P2.6).
    if let Some(why) = is_wedged(&worker) {
        return detail_response(StatusCode::SERVICE_UNAVAILABLE, &why.to_string());
    }
    let Some(challenge) = question.challenge else {
        return detail_response(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the query parameter `challenge` is missing",
        );
    };
    match fleet.answer(&challenge).flatten() {
        Some(answer) => Json(json!({ "value": answer.expose() })).into_response(),
        None => detail_response(StatusCode::NOT_FOUND, "unknown challenge"),
    }
}
