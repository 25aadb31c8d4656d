//! The hosts of a worker: one for each struct that is mounted, under a namespace that no other has.

use std::collections::HashMap;
use std::sync::Arc;

use crate::api::definition::Blueprint;
use crate::error::{Error, Result};
use crate::host::core::Host;
use crate::host::env::WorkerEnv;
use crate::host::options::HostOptions;

/// A host for each of `mounts`, in their order.
pub(super) fn attach(
    mounts: &[(Blueprint, HostOptions)],
    hostname: Option<&str>,
    env: &Arc<WorkerEnv>,
) -> Result<Vec<Arc<Host>>> {
    let mut types: HashMap<String, &'static str> = HashMap::new();
    let mut hosts = Vec::with_capacity(mounts.len());
    for (blueprint, options) in mounts {
        let namespace = options
            .namespace
            .clone()
            .or_else(|| blueprint.namespace.map(str::to_owned))
            .ok_or_else(|| {
                Error::config(format!(
                    "{} has no namespace: name one in `#[pinned_api(\"/namespace\")]` or in its `HostOptions`",
                    blueprint.type_name
                ))
            })?;
        if let Some(reason) = pinned_wire::ids::invalid_namespace_reason(&namespace) {
            return Err(Error::config(format!("namespace {namespace:?}: {reason}")));
        }
        if let Some(known) = types.insert(namespace.clone(), blueprint.type_name) {
            return Err(Error::DuplicateNamespace(format!(
                "two structs claim the namespace {namespace:?}: {known} and {}",
                blueprint.type_name
            )));
        }
        let resolved = options
            .resolve(&blueprint.options)
            .map_err(|error| Error::config(format!("{namespace}: {error}")))?;
        if resolved.env.is_some() && hostname.is_none() {
            return Err(Error::config(format!(
                "{namespace}: `env` needs a worker hostname (`WorkerBuilder::hostname`)"
            )));
        }
        hosts.push(Host::new(
            &namespace,
            resolved,
            *blueprint,
            Arc::clone(env),
        )?);
    }
    Ok(hosts)
}

/// The error for a worker without any namespace.
pub(super) fn nothing_hosted() -> Error {
    Error::config(
        "no namespace to serve: annotate an impl block with `#[pinned_api(\"/namespace\")]`, or mount a struct by hand \
         with `PinnedWorker::builder().host::<T>(\"/namespace\")`; a struct in a library crate of which nothing is \
         used is found after `pinned::link!(crate_name)`",
    )
}
