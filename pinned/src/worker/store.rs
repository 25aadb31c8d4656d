//! Which state store a worker keeps its instances in.

use std::sync::Arc;

use crate::domain::Domain;
use crate::durability::{MemoryStore, StateStore};
use crate::error::{Error, Result};

/// Where durable state goes where nothing is said.
const DEFAULT: &str = "sqlite:pinned.db";

/// The store that `PINNED_STORE` names: `memory:`, `sqlite:PATH`, or `postgres://...`.
///
/// Asked for only if something that is mounted keeps state: a file appears for no other worker.
pub(super) fn named(spec: Option<&str>, domain: &Domain) -> Result<Arc<dyn StateStore>> {
    let spec = spec.unwrap_or(DEFAULT);
    let (kind, place) = spec.split_once(':').unwrap_or_default();
    match (kind, place) {
        ("memory", "") => Ok(Arc::new(MemoryStore::new())),
        ("sqlite", path) if !path.is_empty() => sqlite(path),
        ("postgres" | "postgresql", _) => postgres(spec, domain),
        // Not the value: one that is no store may be a password in the wrong place.
        _ => Err(Error::config(
            "PINNED_STORE names no store: `memory:`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE` is expected",
        )),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str) -> Result<Arc<dyn StateStore>> {
    Ok(Arc::new(crate::durability::SqliteStore::open(path)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_path: &str) -> Result<Arc<dyn StateStore>> {
    Err(missing("sqlite"))
}

#[cfg(feature = "postgres")]
fn postgres(dsn: &str, domain: &Domain) -> Result<Arc<dyn StateStore>> {
    use crate::durability::postgres::{PostgresOptions, PostgresStore};

    let options = PostgresOptions::new().domain(domain.clone());
    let store = PostgresStore::from_dsn(dsn, options)
        .map_err(|error| Error::config(format!("PINNED_STORE: {error}")))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_dsn: &str, _domain: &Domain) -> Result<Arc<dyn StateStore>> {
    Err(missing("postgres"))
}

#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
fn missing(feature: &str) -> Error {
    Error::config(format!(
        "PINNED_STORE asks for a store that this program was built without: switch the feature `{feature}` of `pinned` on"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_store_is_refused_without_being_shown() {
        for spec in ["", "sqlite", "sqlite:", "memory:x", "secret", "redis://h"] {
            let error = named(Some(spec), &Domain::real()).err();
            let text = error.expect(spec).to_string();
            assert!(text.contains("postgres://USER@HOST"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
        assert!(named(Some("memory:"), &Domain::real()).is_ok());
    }
}
