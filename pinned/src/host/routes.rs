//! From the rest of a path to the route that answers it.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::response::Response;
use futures_util::FutureExt;
use http::{HeaderValue, Request, StatusCode, header};
use parking_lot::Mutex;
use std::sync::Arc;
use tower::service_fn;
use tower_service::Service;

use crate::api::refusal::{detail_response, not_found};
use crate::api::route::{Method, Route};
use crate::error::Error;

/// The routes of one host.
///
/// Paths without parameters are compared as they are. Those with parameters go through an `axum::Router`, which hands
/// the request back with the parameters in it, so that axum's `Path` and `MatchedPath` work in handlers.
pub(crate) struct RouteTable {
    fixed: Box<[(&'static str, Methods)]>,
    parametric: Box<[(&'static str, Methods)]>,
    matcher: Option<axum::Router>,
    wakes: bool,
}

/// The routes of one path, a few at most.
struct Methods(Vec<&'static Route>);

/// What a path and a method lead to.
pub(super) enum Matched {
    Route(&'static Route, Request<Body>),
    /// No route, or not with this method: the answer (H1.7).
    Answer(Response),
}

impl RouteTable {
    pub(super) fn new(routes: &'static [Route], wakes: bool) -> Result<Self, Error> {
        let mut fixed: Vec<(&'static str, Methods)> = Vec::new();
        let mut parametric: Vec<(&'static str, Methods)> = Vec::new();
        for route in routes {
            let path = route.spec.path();
            let table = if path.contains(['{', '}']) {
                &mut parametric
            } else {
                &mut fixed
            };
            match table.iter_mut().find(|(known, _)| *known == path) {
                Some((_, methods)) => methods.0.push(route),
                None => table.push((path, Methods(vec![route]))),
            }
        }
        let matcher = (!parametric.is_empty()).then(|| matcher(&parametric));
        Ok(Self {
            fixed: fixed.into(),
            parametric: parametric.into(),
            matcher,
            wakes,
        })
    }

    /// The hot path: a route without parameters.
    pub(super) fn find_fixed(
        &self,
        rest: &str,
        method: &http::Method,
        headers: &http::HeaderMap,
    ) -> Option<Found> {
        let rest = if rest.is_empty() { "/" } else { rest };
        if let Some((_, methods)) = self.fixed.iter().find(|(path, _)| *path == rest) {
            return Some(match methods.choose(method, headers) {
                Ok(route) => Found::Route(route),
                Err(allow) => Found::MethodNotAllowed(allow),
            });
        }
        (self.wakes && rest == "/_wake").then(|| {
            if method == http::Method::POST {
                Found::Wake
            } else {
                Found::MethodNotAllowed("POST".to_owned())
            }
        })
    }

    /// A route with parameters, which the request then carries; or the answer that there is none.
    pub(super) fn find_parametric(&self, rest: &str, request: Request<Body>) -> Matched {
        let (index, request) = match self.capture(rest, request) {
            Ok(captured) => captured,
            Err(query) => return Matched::Answer(self.not_found(rest, query.as_deref())),
        };
        let methods = &self.parametric[index].1;
        match methods.choose(request.method(), request.headers()) {
            Ok(route) => Matched::Route(route, request),
            Err(allow) => Matched::Answer(not_allowed(&allow)),
        }
    }

    /// Sends the request through the matcher; on a miss the request's query comes back for a redirect.
    fn capture(
        &self,
        rest: &str,
        request: Request<Body>,
    ) -> Result<(usize, Request<Body>), Option<String>> {
        let query = request.uri().query().map(str::to_owned);
        let Some(matcher) = &self.matcher else {
            return Err(query);
        };
        let original = request.uri().clone();
        let Ok(below) = rest.parse() else {
            return Err(query);
        };
        let mut request = request;
        *request.uri_mut() = below;
        // Parameters of a router around the worker are none of the route's.
        let around = std::mem::take(request.extensions_mut());
        // Neither the matcher nor the endpoints wait for anything.
        let response = matcher.clone().call(request).now_or_never();
        let captured = response
            .and_then(|answer: Result<Response, Infallible>| answer.ok())
            .and_then(|mut response| response.extensions_mut().remove::<Captured>());
        match captured.and_then(|captured| captured.0.lock().take()) {
            Some((index, mut request)) => {
                *request.uri_mut() = original;
                let mut matched = std::mem::replace(request.extensions_mut(), around);
                // The matcher takes the rest of the path for the whole.
                matched.remove::<OriginalUri>();
                request.extensions_mut().extend(matched);
                Ok((index, request))
            }
            None => Err(query),
        }
    }

    /// 404, or a redirect to the path with one slash more or less at its end (H1.7).
    fn not_found(&self, rest: &str, query: Option<&str>) -> Response {
        let other = match rest.strip_suffix('/') {
            Some(shorter) if shorter.ends_with('/') => return not_found(),
            Some(shorter) => shorter.to_owned(),
            None => format!("{rest}/"),
        };
        if other.len() < 2 || !self.has_path(&other) {
            return not_found();
        }
        // Relative to the last segment of the path that was asked for.
        let last = other.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        let slash = if other.ends_with('/') { "/" } else { "" };
        let up = if other.ends_with('/') { "./" } else { "../" };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        match HeaderValue::from_str(&format!("{up}{last}{slash}{query}")) {
            Ok(location) => {
                response.headers_mut().insert(header::LOCATION, location);
                response
            }
            Err(_) => not_found(),
        }
    }

    fn has_path(&self, rest: &str) -> bool {
        self.fixed.iter().any(|(path, _)| *path == rest)
            || self.matcher.is_some() && self.capture(rest, Request::new(Body::empty())).is_ok()
    }
}

/// What a path without parameters leads to.
pub(super) enum Found {
    Route(&'static Route),
    /// `POST /_wake` (H1.13).
    Wake,
    MethodNotAllowed(String),
}

impl Methods {
    fn choose(
        &self,
        method: &http::Method,
        headers: &http::HeaderMap,
    ) -> Result<&'static Route, String> {
        let is_get = method == http::Method::GET || method == http::Method::HEAD;
        let upgrade = self.has_socket() && crate::ws::is_upgrade(method, headers);
        let route = self.0.iter().find(|route| match route.spec.method() {
            Method::WebSocket => upgrade,
            Method::Get => is_get && !upgrade,
            verb => verb.as_str() == method.as_str(),
        });
        // A path with a socket alone answers a plain GET with what the handshake lacks; one with a page alone answers
        // an upgrade with the page.
        let route = route.or_else(|| {
            self.0.iter().find(|route| match route.spec.method() {
                Method::WebSocket | Method::Get => is_get,
                _ => false,
            })
        });
        route.copied().ok_or_else(|| self.allow())
    }

    fn has_socket(&self) -> bool {
        self.0
            .iter()
            .any(|route| route.spec.method() == Method::WebSocket)
    }

    fn allow(&self) -> String {
        let mut verbs: Vec<&str> = Vec::new();
        for route in &self.0 {
            let verb = route.spec.method().as_str();
            if !verbs.contains(&verb) {
                verbs.push(verb);
            }
            if verb == "GET" && !verbs.contains(&"HEAD") {
                verbs.push("HEAD");
            }
        }
        verbs.join(", ")
    }
}

pub(super) fn not_allowed(allow: &str) -> Response {
    let mut response = detail_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// A request on its way back out of the matcher. Extensions must be `Clone`; this one is taken once.
#[derive(Clone)]
struct Captured(Arc<Mutex<Option<Match>>>);

/// The index of a parametric path, and the request with its parameters.
type Match = (usize, Request<Body>);

fn matcher(paths: &[(&'static str, Methods)]) -> axum::Router {
    let mut router = axum::Router::new();
    for (index, (path, _)) in paths.iter().enumerate() {
        // Conflicting paths are compile errors of the macro, by the same rules.
        router = router.route_service(
            path,
            service_fn(move |request: Request<Body>| async move {
                let mut response = Response::new(Body::empty());
                response
                    .extensions_mut()
                    .insert(Captured(Arc::new(Mutex::new(Some((index, request))))));
                Ok::<_, Infallible>(response)
            }),
        );
    }
    router
}
