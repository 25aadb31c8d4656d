//! The bodies and queries that operators send, read and checked.

use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry as wire;

use crate::sessions::{RegistryError, checks, json};
use crate::store::PlacementKey;

/// The most events that one answer has: all that the ring keeps (P3.3).
pub const MOST_EVENTS: usize = 1_000;

/// A drain (P3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// The worker.
    pub client_id: String,
    /// What is left until it must be empty; `None` cordons.
    pub deadline: Option<Duration>,
}

/// A wind-down (P3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindDown {
    /// The environment; `*` in single mode.
    pub env: Arc<str>,
    /// The namespace, with the slash.
    pub namespace: Arc<str>,
    /// One id; all of them without it.
    pub id: Option<Arc<str>>,
    /// What is left until the holders must have let go; `None` revokes.
    pub deadline: Option<Duration>,
}

/// Which events are asked for (P3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// Those after this number.
    pub after: u64,
    /// At most so many.
    pub limit: usize,
}

/// Reads the body of a drain.
///
/// # Errors
///
/// [`RegistryError::Malformed`], which says what was expected where.
pub fn drain(body: &[u8]) -> Result<Drain, RegistryError> {
    let given: wire::DrainOrder = json::read_object(body)?;
    Ok(Drain {
        client_id: client_id(given.client_id)?,
        deadline: given.deadline.0,
    })
}

/// Reads the body of an undrain: the worker.
///
/// # Errors
///
/// As [`drain`].
pub fn undrain(body: &[u8]) -> Result<String, RegistryError> {
    let given: wire::UndrainOrder = json::read_object(body)?;
    client_id(given.client_id)
}

/// Reads the body of a wind-down.
///
/// # Errors
///
/// As [`drain`].
pub fn wind_down(body: &[u8]) -> Result<WindDown, RegistryError> {
    let given: wire::WindDownOrder = json::read_object(body)?;
    if given.env.is_some() {
        return Err(RegistryError::Malformed(
            "env requires hostname-aware mode".to_owned(),
        ));
    }
    checks::namespace("namespace", &given.namespace)?;
    if let Some(id) = &given.id {
        checks::id("id", id)?;
    }
    Ok(WindDown {
        env: PlacementKey::SINGLE.into(),
        namespace: given.namespace.into(),
        id: given.id.map(Arc::from),
        deadline: given.deadline.0,
    })
}

/// Reads the query of `GET /registry/events`: `after` (0) and `limit` (1,000).
///
/// # Errors
///
/// As [`drain`].
pub fn events(query: Option<&str>) -> Result<Events, RegistryError> {
    let mut asked = Events {
        after: 0,
        limit: MOST_EVENTS,
    };
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => {
                asked.after = value.parse().map_err(|_| {
                    RegistryError::malformed("after", "expected the number of an event")
                })?;
            }
            "limit" => {
                asked.limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MOST_EVENTS).contains(limit))
                    .ok_or_else(|| {
                        RegistryError::malformed(
                            "limit",
                            format_args!("expected a number from 1 to {MOST_EVENTS}"),
                        )
                    })?;
            }
            _ => {}
        }
    }
    Ok(asked)
}

fn client_id(id: String) -> Result<String, RegistryError> {
    checks::text("clientId", &id, checks::MAX_CLIENT_ID_BYTES)?;
    Ok(id)
}
