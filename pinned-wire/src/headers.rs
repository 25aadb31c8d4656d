//! The names of the headers between worker and control plane.

use http::HeaderName;
pub use http::header::RETRY_AFTER;

/// Control plane to worker: the [attestation](crate::attestation) of the caller.
pub const ATTESTATION: HeaderName = HeaderName::from_static("pinboard-attestation");

/// Control plane to worker, on the worker's own routes only: the worker secret.
pub const PROXY_SECRET: HeaderName = HeaderName::from_static("pinboard-proxy-secret");

/// Control plane to worker: the placement [epoch](crate::epoch) of the id.
pub const EPOCH: HeaderName = HeaderName::from_static("pinboard-epoch");

/// Worker to control plane: the calling instance, `<ns>/<id>`.
pub const FROM: HeaderName = HeaderName::from_static("pinboard-from");

/// Worker to control plane: the session that the worker holds.
pub const SESSION: HeaderName = HeaderName::from_static("pinboard-session");

/// Worker to control plane: the worker secret, as the proof of its session.
pub const SESSION_SECRET: HeaderName = HeaderName::from_static("pinboard-session-secret");

/// Worker to control plane: how deep in a chain of calls this one is, in decimal digits.
pub const SUBREQUEST_DEPTH: HeaderName = HeaderName::from_static("pinboard-subrequest-depth");

/// Worker to control plane: the [chain](crate::chain) of calls that this one belongs to. Workers of other editions send
/// none.
pub const CHAIN: HeaderName = HeaderName::from_static("pinboard-chain");

/// Worker to control plane, on a response: the request was not run, and why.
pub const REFUSAL: HeaderName = HeaderName::from_static("pinned-refusal");
