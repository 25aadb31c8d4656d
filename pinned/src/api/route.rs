//! What a block's `#[route::*]` attributes say, as data.

use std::fmt;

use futures_util::future::BoxFuture;

use super::auth::{AuthOutput, Connection, Denied};
use super::call::Call;
use super::context::Context;
use super::handler::HandlerFuture;

/// The verb of a route (H1.8). `HEAD` is answered wherever `GET` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// `#[route::get]`
    Get,
    /// `#[route::post]`
    Post,
    /// `#[route::put]`
    Put,
    /// `#[route::delete]`
    Delete,
    /// `#[route::patch]`
    Patch,
    /// `#[route::websocket]`
    WebSocket,
}

impl Method {
    /// The verb as it stands in a request line; a WebSocket is opened with `GET`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get | Self::WebSocket => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Patch => "PATCH",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WebSocket => "WEBSOCKET",
            other => other.as_str(),
        })
    }
}

/// Who decides whether a request may reach a handler (H2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteAuth {
    /// The block's `#[authorize]` function, by name.
    Default(&'static str),
    /// Another function of the block: `auth = Self::name`.
    Named(&'static str),
    /// `auth = none`: anyone, although the block has an authorizer.
    Public,
    /// The block has no `#[authorize]`; everyone is admitted (H2.4).
    Open,
}

/// One route of an annotated struct: what tools see of its surface.
///
/// ```
/// use pinned::{PinnedApi, pinned_api, route};
///
/// #[derive(Default)]
/// struct Lamp;
///
/// #[pinned_api]
/// impl Lamp {
///     #[route::post("/toggle")]
///     async fn toggle(&mut self) -> &'static str { "on" }
/// }
///
/// let route = Lamp::routes().next().unwrap();
/// assert_eq!((route.method().as_str(), route.path(), route.handler()), ("POST", "/toggle", "toggle"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteSpec {
    method: Method,
    path: &'static str,
    auth: RouteAuth,
    handler: &'static str,
    durable: bool,
}

impl RouteSpec {
    #[doc(hidden)]
    pub const fn new(
        method: Method,
        path: &'static str,
        auth: RouteAuth,
        handler: &'static str,
    ) -> Self {
        Self {
            method,
            path,
            auth,
            handler,
            durable: false,
        }
    }

    /// The verb.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The path below `/<namespace>/<id>`, in axum's syntax.
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// Who authorizes it.
    pub const fn auth(&self) -> RouteAuth {
        self.auth
    }

    /// The name of the method that answers, without `r#`.
    pub const fn handler(&self) -> &'static str {
        self.handler
    }

    /// Whether it answers only once everything that its instance enlisted before the answer is durable.
    pub const fn is_durable(&self) -> bool {
        self.durable
    }
}

/// A type-erased authorizer, as generated code hands it over.
#[doc(hidden)]
pub type AuthFn =
    for<'a> fn(&'a Context, &'a Connection) -> BoxFuture<'a, Result<AuthOutput, Denied>>;

/// A type-erased handler, as generated code hands it over.
#[doc(hidden)]
pub type HandlerFn = fn(Call) -> HandlerFuture;

/// A route with the code behind it.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Route {
    pub(crate) spec: RouteSpec,
    pub(crate) auth: Option<AuthFn>,
    pub(crate) handler: HandlerFn,
}

impl Route {
    /// Used by generated code alone.
    pub const fn new(spec: RouteSpec, auth: Option<AuthFn>, handler: HandlerFn) -> Self {
        Self {
            spec,
            auth,
            handler,
        }
    }

    /// `durable`: the answer waits for the instance's log.
    pub const fn durable(mut self) -> Self {
        self.spec.durable = true;
        self
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}
