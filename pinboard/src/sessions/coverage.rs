//! Whether a caller's claims cover a worker (P2.2).

use std::sync::Arc;

use super::AdvertisedUrl;
use crate::passport::{Grants, check_addresses};
use crate::store::{ClientRecord, SessionRecord};

/// Whether all of a worker's namespaces, its hostname and its environments are covered.
pub(crate) fn covers<'a>(
    grants: &Grants,
    mut namespaces: impl Iterator<Item = &'a Arc<str>>,
    hostname: &str,
    mut envs: impl Iterator<Item = &'a Arc<str>>,
) -> bool {
    namespaces.all(|namespace| grants.covers_namespace(namespace))
        && grants.covers_hostname(hostname)
        && envs.all(|env| grants.covers_env(env))
}

/// Whether a session's worker is covered.
pub(crate) fn covers_session(grants: &Grants, record: &SessionRecord) -> bool {
    covers(
        grants,
        record.namespaces.iter(),
        &record.hostname,
        std::iter::once(&record.env).chain(record.envs.values()),
    )
}

/// Whether a worker that the store remembers is covered.
pub(crate) fn covers_client(grants: &Grants, record: &ClientRecord) -> bool {
    covers(
        grants,
        record.namespaces.iter(),
        &record.hostname,
        record.envs.iter(),
    )
}

/// Whether the addresses behind a session's URL, as they were when it was proved, are still allowed.
pub(crate) fn covers_addresses(
    grants: &Grants,
    url: &AdvertisedUrl,
    record: &SessionRecord,
) -> bool {
    let addresses: Vec<_> = addresses_of(record)
        .iter()
        .map(|address| address.ip())
        .collect();
    check_addresses(url.url(), grants, &addresses).is_ok()
}

/// The addresses behind a session's URL, as last found out.
pub(crate) fn addresses_of(record: &SessionRecord) -> &[std::net::SocketAddr] {
    match &record.update.moved_to {
        Some(moved) => moved,
        None => &record.addresses,
    }
}
