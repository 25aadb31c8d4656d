//! Calls to instances elsewhere, through the control plane (W14.6).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::HOST;
use http::{HeaderValue, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pinned_wire::headers::{FROM, SESSION, SESSION_SECRET, SUBREQUEST_DEPTH};
use sync_wrapper::SyncWrapper;

use super::registration::Registration;
use crate::api::cluster::ClusterError;
use crate::error::BoxError;

/// Carries calls to the control plane, which finds the instance.
pub(crate) struct Remote {
    client: reqwest::Client,
    url: String,
    /// What the worker is routed by, in hostname-aware mode.
    host: Option<HeaderValue>,
    registration: Arc<Registration>,
}

impl Remote {
    pub(crate) fn new(
        client: reqwest::Client,
        url: &str,
        hostname: Option<&str>,
        registration: Arc<Registration>,
    ) -> Self {
        Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
            host: hostname.and_then(|hostname| HeaderValue::try_from(hostname).ok()),
            registration,
        }
    }

    /// Sends `request`, whose private headers have been dropped, in the name of `<ns>/<id>`. No retry: a refusal is an
    /// answer.
    pub(crate) async fn send(
        &self,
        caller: &str,
        depth: u32,
        request: Request<Body>,
    ) -> Result<Response, ClusterError> {
        let session = self
            .registration
            .session_id()
            .ok_or(ClusterError::NoSession)?;
        let (mut head, body) = request.into_parts();
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let url = format!("{}{target}", self.url);
        let invalid =
            |_| ClusterError::InvalidRequest("the caller has no name for a header".into());
        head.headers
            .insert(FROM, HeaderValue::try_from(caller).map_err(invalid)?);
        head.headers
            .insert(SESSION, HeaderValue::try_from(&*session).map_err(invalid)?);
        let mut secret =
            HeaderValue::try_from(self.registration.secret().expose()).map_err(invalid)?;
        secret.set_sensitive(true);
        head.headers.insert(SESSION_SECRET, secret);
        head.headers.insert(SUBREQUEST_DEPTH, depth.into());
        if let Some(host) = &self.host {
            head.headers.insert(HOST, host.clone());
        }
        let mut call = self.client.request(head.method, url).headers(head.headers);
        if !body.is_end_stream() {
            call = call.body(reqwest::Body::wrap(Shareable {
                size: body.size_hint(),
                body: SyncWrapper::new(body),
            }));
        }
        let answer = call
            .send()
            .await
            .map_err(|error| ClusterError::Unreachable(error.into()))?;
        Ok(http::Response::<reqwest::Body>::from(answer).map(Body::new))
    }
}

/// A body that may be shared, because nobody looks at it but its owner.
struct Shareable {
    body: SyncWrapper<Body>,
    /// As it was when nothing had been read: it decides how the body is framed.
    size: SizeHint,
}

impl HttpBody for Shareable {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(self.body.get_mut())
            .poll_frame(cx)
            .map_err(Into::into)
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}
