//! Authorization of HTTP requests: running the authorizer, and what a caller sees of a denial.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::core::Host;
use super::dispatch::Attached;
use super::head::Identified;
use super::metrics::Transport;
use super::record::Record;
use crate::api::auth::{AuthOutput, AuthRejected, Connection, Denied};
use crate::api::call::Call;
use crate::api::context::Context;
use crate::api::headers::strike;
use crate::api::refusal::{Refusal, detail_response, internal_error, json_response};
use crate::api::request::LazyState;
use crate::api::route::{AuthFn, Route};
use crate::api::seam::Seam;

impl Host {
    /// Authorizes an admitted request and brings it to its handler.
    pub(super) async fn authorize(
        &self,
        route: &'static Route,
        authorize: AuthFn,
        attached: Attached,
        identified: Identified,
    ) -> Response {
        let Attached { record, entry } = attached;
        let (parts, body) = identified.request.into_parts();
        let connection = Connection {
            parts,
            attestation: identified.attestation,
            session: None,
        };
        let context = Context::new(Arc::clone(&record) as Seam);
        let output = match run_authorizer(authorize, &context, &connection).await {
            Ok(output) => output,
            Err(denied) => return self.deny(&record, denied),
        };
        let Connection {
            parts, attestation, ..
        } = connection;
        let call = Call {
            route: &route.spec,
            state: LazyState::new(attestation, Some(output)),
            parts,
            body,
            origin: identified.origin,
            entry,
            session: None,
        };
        (route.handler)(call).await
    }

    /// What an HTTP caller sees of a denial (H2.8, H2.12, H2.14, H2.15).
    fn deny(&self, record: &Record, denied: Denied) -> Response {
        match denied {
            Denied::Rejected(rejected) => self.deny_deliberately(record, &rejected),
            // It may relay the answer of another instance, whose refusal is not this host's.
            Denied::Response(mut response) => {
                strike(response.headers_mut(), &pinned_wire::headers::REFUSAL);
                *response
            }
            Denied::Http(status, detail) => detail_response(status, &detail),
            Denied::Close(code, reason) => {
                let error = format!("the authorizer closes a WebSocket ({code}, {reason}) on HTTP");
                self.authorizer_failed(record, Transport::Http, &error);
                Refusal::AuthorizationFailed.into_response()
            }
            Denied::Fault(error) => {
                self.authorizer_failed(record, Transport::Http, &error.to_string());
                Refusal::AuthorizationFailed.into_response()
            }
        }
    }

    fn deny_deliberately(&self, record: &Record, rejected: &AuthRejected) -> Response {
        let body = match rejected.json() {
            None => serde_json::json!({ "message": rejected.message() }).to_string(),
            Some(Ok(payload)) => payload,
            Some(Err(error)) => {
                self.authorizer_failed(record, Transport::Http, &error);
                return internal_error();
            }
        };
        json_response(rejected.status(), body)
    }

    pub(super) fn authorizer_failed(&self, record: &Record, transport: Transport, error: &str) {
        self.metrics.request_failed("auth", transport);
        tracing::error!(
            target: "pinned::host",
            instance_id = record.id(),
            namespace = &*self.namespace,
            transport = transport.as_str(),
            error,
            "the authorizer failed"
        );
    }
}

/// Runs an authorizer; its panic is a fault like any other.
pub(super) async fn run_authorizer(
    authorize: AuthFn,
    context: &Context,
    connection: &Connection,
) -> Result<AuthOutput, Denied> {
    AssertUnwindSafe(async { authorize(context, connection).await })
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Err(Denied::fault("the authorizer panicked")))
}
