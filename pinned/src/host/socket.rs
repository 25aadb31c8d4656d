//! WebSocket requests: from the upgrade to the session.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use tokio::sync::oneshot;

use super::authorization::run_authorizer;
use super::core::Host;
use super::dispatch::Attached;
use super::head::Identified;
use super::metrics::Transport;
use super::record::{Record, Stage};
use crate::api::auth::{AuthRejected, Connection, Denied};
use crate::api::call::Call;
use crate::api::chain::Origin;
use crate::api::context::Context;
use crate::api::refusal::empty_response;
use crate::api::request::{LazyState, RequestBody};
use crate::api::route::Route;
use crate::api::scope::Scope;
use crate::api::seam::Seam;
use crate::api::socket::{FailureHooks, Session};
use crate::ws::{SocketControl, close_code};

impl Host {
    /// Answers an upgrade. The session goes on in a task of its own after the answer.
    pub(super) async fn serve_socket(
        self: &Arc<Self>,
        route: &'static Route,
        id: &str,
        epoch: Option<u64>,
        identified: Identified,
    ) -> Response {
        let Identified {
            request,
            attestation,
            origin,
        } = identified;
        let (mut parts, _body) = request.into_parts();
        // A request that can have no socket constructs nothing.
        let (control, answer) = match SocketControl::open(&mut parts, self.env.domain.clone()) {
            Ok(opened) => opened,
            Err(response) => return response,
        };
        let attached = match self.attach(id, epoch, &origin).await {
            Ok(attached) => attached,
            Err(response) => return response,
        };
        let session = Session {
            control,
            hooks: FailureHooks::default(),
        };
        let connection = Connection {
            parts,
            attestation,
            session: Some(session.clone()),
        };
        let (answered, client) = oneshot::channel::<()>();
        let host = Arc::clone(self);
        let scope = Scope::entering(Arc::clone(&attached.record) as Seam, origin.clone());
        self.env.domain.spawn(async move {
            let session_end = host.run_session(route, attached, connection, origin, client);
            let response = scope.run(session_end).await;
            // Of no effect where the socket was accepted or refused by then.
            session.control.refuse(response);
        });
        let response = answer.await;
        // Tells the session that its client was here until it had its answer.
        let _ = answered.send(());
        response.unwrap_or_else(|_| empty_response(StatusCode::FORBIDDEN))
    }

    /// Authorizes and runs the session. The response is for a socket that was never accepted.
    async fn run_session(
        &self,
        route: &'static Route,
        attached: Attached,
        connection: Connection,
        origin: Origin,
        client: oneshot::Receiver<()>,
    ) -> Response {
        let Some(session) = connection.session.clone() else {
            return empty_response(StatusCode::FORBIDDEN);
        };
        let auth = match route.auth {
            None => None,
            Some(authorize) => {
                let context = Context::new(Arc::clone(&attached.record) as Seam);
                let authorized = tokio::select! {
                    biased;
                    authorized = run_authorizer(authorize, &context, &connection) => authorized,
                    // A client that left before its answer gives its authorizer up (H2.17).
                    () = client_left(client) => return empty_response(StatusCode::FORBIDDEN),
                    // After it, nothing else would: an accepted socket has nobody who waits for the authorizer.
                    () = cut_off(&attached.record) => return session.instance_closed().await,
                };
                match authorized {
                    Ok(output) => Some(output),
                    Err(denied) => {
                        self.deny_socket(&attached.record, &session, denied).await;
                        return empty_response(StatusCode::FORBIDDEN);
                    }
                }
            }
        };
        let Connection {
            parts, attestation, ..
        } = connection;
        let call = Call {
            route: &route.spec,
            state: LazyState::new(attestation, auth),
            parts,
            body: RequestBody::Body(Body::empty()),
            origin,
            entry: attached.entry,
            session: Some(session.clone()),
        };
        let response = (route.handler)(call).await;
        if session.control.is_accepted() {
            // An argument after the authorizer's acceptance could not be had.
            session
                .control
                .end(close_code::POLICY_VIOLATION, "bad request")
                .await;
        }
        response
    }

    /// What the client of a WebSocket sees of a denial (H2.9 to H2.15). Before the acceptance that is a 403.
    async fn deny_socket(&self, record: &Arc<Record>, session: &Session, denied: Denied) {
        let control = &session.control;
        match denied {
            Denied::Rejected(rejected) => {
                self.deny_socket_deliberately(record, session, &rejected)
                    .await;
            }
            Denied::Http(_, detail) => {
                control.end(close_code::POLICY_VIOLATION, &detail).await;
            }
            Denied::Close(code, reason) => control.end(code, &reason).await,
            Denied::Response(response) => {
                let error = format!(
                    "the authorizer answers a WebSocket with {}",
                    response.status()
                );
                self.authorizer_failed(record, Transport::WebSocket, &error);
                session.fail("authorization failed").await;
            }
            Denied::Fault(error) => {
                self.authorizer_failed(record, Transport::WebSocket, &error.to_string());
                session.fail("authorization failed").await;
            }
        }
    }

    async fn deny_socket_deliberately(
        &self,
        record: &Arc<Record>,
        session: &Session,
        rejected: &AuthRejected,
    ) {
        let control = &session.control;
        let payload = match rejected.json() {
            None => {
                control
                    .end(close_code::POLICY_VIOLATION, rejected.message())
                    .await;
                return;
            }
            Some(payload) => payload,
        };
        let sent = match payload {
            Ok(payload) if control.is_accepted() => control
                .send_text(payload)
                .await
                .map_err(|error| (error.is_client_left(), error.to_string())),
            Ok(_) => Err((false, "a payload needs an accepted socket".to_owned())),
            Err(error) => Err((false, error)),
        };
        match sent {
            Ok(()) => {
                control
                    .end(close_code::POLICY_VIOLATION, rejected.message())
                    .await;
            }
            // Nobody is there to be told (H2.11).
            Err((true, _)) => {}
            Err((false, error)) => {
                self.authorizer_failed(record, Transport::WebSocket, &error);
                session.fail("authorization failed").await;
            }
        }
    }
}

/// Resolves once the instance has closed, and everything of it is to end.
async fn cut_off(record: &Record) {
    record
        .wait_until(|record| record.stage() == Stage::CutAll)
        .await;
}

/// Resolves when the client left before its answer; never after it.
async fn client_left(client: oneshot::Receiver<()>) {
    if client.await.is_ok() {
        std::future::pending::<()>().await;
    }
}
