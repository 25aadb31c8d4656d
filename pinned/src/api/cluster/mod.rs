//! Calls from one instance to another (W14).

mod error;
mod request;
mod response;
mod socket;

use std::fmt;
use std::sync::Arc;

use http::Method;

pub use error::{ClusterError, SocketRefused};
pub use request::ClusterRequest;
pub use response::ClusterResponse;
pub use socket::ClusterSocketRequest;

use self::request::Draft;
use super::seam::Seam;

/// How deep a chain of calls may go (W14.3).
pub const MAX_CALL_DEPTH: u32 = 50;

/// Calls other instances by `/<namespace>/<id>/...`, with this instance as the attested caller.
///
/// ```
/// # async fn demo(ctx: pinned::Context) -> Result<(), pinned::ClusterError> {
/// let answer = ctx.cluster().post("/counters/alice/increment").send().await?;
/// if answer.status().is_success() {
///     let count: u64 = answer.json().await?;
/// #   let _ = count;
/// } else {
///     // It was refused, or failed: `answer.text()` says why.
/// }
/// # Ok(())
/// # }
/// ```
///
/// [`ClusterRequest::send`] is `Ok` for an answer of whatever status. Look at [`ClusterResponse::status`] before you rely
/// on what the call was for.
///
/// A target that lives on this worker is called within the process, and any other through pinboard. Either way it knows
/// this instance as the caller, calls are [`MAX_CALL_DEPTH`] deep at the most, and a chain of calls that comes back to a
/// turn which it holds itself is answered 508 instead of waiting for ever.
#[derive(Clone)]
pub struct Cluster {
    seam: Seam,
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(&self, path: impl AsRef<str>) -> ClusterRequest {
            self.request(Method::$method, path)
        })*
    };
}

impl Cluster {
    pub(crate) fn new(seam: Seam) -> Self {
        Self { seam }
    }

    verbs! {
        /// A `GET` to `path`.
        get = GET;
        /// A `POST` to `path`.
        post = POST;
        /// A `PUT` to `path`.
        put = PUT;
        /// A `PATCH` to `path`.
        patch = PATCH;
        /// A `DELETE` to `path`.
        delete = DELETE;
    }

    /// A request with `method` to `path`, which starts with `/` and may carry a query.
    pub fn request(&self, method: Method, path: impl AsRef<str>) -> ClusterRequest {
        ClusterRequest::new(self.draft(path), method)
    }

    /// A WebSocket to `path`, which starts with `/` and may carry a query.
    ///
    /// ```
    /// use pinned::ws::Message;
    ///
    /// # async fn demo(ctx: pinned::Context) -> Result<(), pinned::BoxError> {
    /// let mut socket = ctx.cluster().websocket("/rooms/lobby/feed").connect().await?;
    /// socket.send_text("subscribe").await?;
    /// while let Some(message) = socket.recv().await {
    ///     if let Message::Text(text) = message? {
    ///         println!("{text}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn websocket(&self, path: impl AsRef<str>) -> ClusterSocketRequest {
        ClusterSocketRequest::new(self.draft(path))
    }

    fn draft(&self, path: impl AsRef<str>) -> Draft {
        Draft::new(Arc::clone(&self.seam), path.as_ref())
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.seam.namespace())
            .field("id", &self.seam.id())
            .finish()
    }
}
