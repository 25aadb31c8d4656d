//! What a worker says when it starts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;

use super::PinnedWorker;
use crate::api::route::RouteAuth;

/// Says what is served, where, and from which crates: a struct that is missing is seen at once.
pub(super) fn show(worker: &PinnedWorker, address: Option<SocketAddr>, probes: Option<SocketAddr>) {
    let text = describe(worker, address, probes);
    // Standard error, so that it is there without a subscriber and apart from a program's own output.
    // A pipe that nobody reads is no reason not to serve.
    let _ = io::stderr().write_all(text.as_bytes());
    tracing::info!(target: "pinned::worker", namespaces = ?worker.namespaces().collect::<Vec<_>>(), ?address, "serving");
}

fn describe(
    worker: &PinnedWorker,
    address: Option<SocketAddr>,
    probes: Option<SocketAddr>,
) -> String {
    let mut text = String::new();
    let place = address.map_or_else(|| "an unknown address".to_owned(), place);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "pinned {} serving on {place}",
        env!("CARGO_PKG_VERSION")
    );
    let mode = if worker.core.env.is_placed() {
        "behind a control plane"
    } else {
        "local (DEV MODE: no control plane keeps a second worker from serving the same ids)"
    };
    let store = match &worker.core.env.store {
        Some(store) => store.describe(),
        None => "none; state lives as long as its instance".to_owned(),
    };
    let _ = writeln!(text, "  mode   {mode}\n  store  {store}");
    if let Some(probes) = probes {
        let _ = writeln!(text, "  probes {probes}");
    }
    for host in worker.each_host() {
        let blueprint = &host.blueprint;
        let _ = writeln!(
            text,
            "  {}  {}  (crate {})",
            host.namespace, blueprint.type_name, blueprint.package
        );
        let routes: BTreeSet<(&str, String, &str)> = blueprint
            .routes
            .iter()
            .map(|route| &route.spec)
            .map(|spec| (spec.path(), spec.method().to_string(), gate(spec.auth())))
            .collect();
        for (path, method, gate) in routes {
            // What people type; the path with a slash at its end works as well.
            let path = if path == "/" { "" } else { path };
            let _ = writeln!(text, "    {method:9} {}/{{id}}{path}{gate}", host.namespace);
        }
    }
    text
}

/// Whether a route is open to everyone: what one wants to see before somebody else does.
fn gate(auth: RouteAuth) -> &'static str {
    match auth {
        RouteAuth::Default(_) | RouteAuth::Named(_) => "",
        RouteAuth::Public | RouteAuth::Open => "  (open to everyone)",
    }
}

/// An address as a browser takes it: one for all interfaces is reached at `localhost`.
fn place(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{} (all interfaces)", address.port())
    } else {
        format!("http://{address}")
    }
}
