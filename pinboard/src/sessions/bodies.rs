//! The bodies that workers send, read and checked: what gets through here is safe to keep, to show and to ask the world
//! about.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry::{self as wire, Secret};

use super::json::{first, read, read_object};
use super::{AdvertisedUrl, RegistryError, checks};
use crate::store::{PlacementKey, Release, SessionId};

/// The most namespaces that one worker serves.
pub const MAX_NAMESPACES: usize = 1_000;

/// What a worker's URL is asked, and must answer (P2.3).
#[derive(Clone, Debug)]
pub struct Challenge {
    /// What it is asked.
    pub ask: String,
    /// What it must answer.
    pub expect: Secret,
}

/// A registration (P2.1).
#[derive(Clone, Debug)]
pub struct Register {
    /// The worker process.
    pub client_id: String,
    /// Its secret.
    pub secret: Secret,
    /// What it serves; at least one, no one twice.
    pub namespaces: Vec<Arc<str>>,
    /// Where.
    pub url: AdvertisedUrl,
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether it drains of its own accord.
    pub draining: bool,
    /// How it proves its URL.
    pub challenge: Challenge,
    /// The session that it holds or has lost.
    pub previous: Option<SessionId>,
    /// What lives in it; sorted, no one twice, all of its own namespaces.
    pub instances: Vec<PlacementKey>,
    /// Whether its lease had passed when it sent this.
    pub lapsed: bool,
}

/// A heartbeat (P2.6).
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The session.
    pub session: SessionId,
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether it drains of its own accord.
    pub draining: bool,
    /// What is left until its own deadline.
    pub drain_left: Option<Duration>,
    /// How it proves its URL anew.
    pub challenge: Option<Challenge>,
    /// The control messages that it confirms.
    pub acks: Vec<String>,
}

/// Reads the body of a register (P2.1, P9.4).
///
/// # Errors
///
/// [`RegistryError::Malformed`], which says what was expected where.
pub fn register(body: &[u8]) -> Result<Register, RegistryError> {
    let given: wire::Register = read_object(body)?;
    refuse_hostname_aware(&given)?;
    checks::text("clientId", &given.client_id, checks::MAX_CLIENT_ID_BYTES)?;
    checks::secret("secret", &given.secret)?;
    let namespaces = namespaces(given.namespaces)?;
    let url = AdvertisedUrl::parse(&given.advertise_url)
        .map_err(|error| RegistryError::Malformed(error.to_string()))?;
    let challenge = challenge(given.challenge, given.challenge_value)?;
    let previous = given.prev_session_id.map(previous).transpose()?;
    let instances = instances(&namespaces, given.instances.unwrap_or_default())?;
    Ok(Register {
        client_id: given.client_id,
        secret: given.secret,
        namespaces,
        url,
        headroom: given.headroom,
        draining: given.draining,
        challenge,
        previous,
        instances,
        lapsed: given.lapsed,
    })
}

/// Reads the body of a heartbeat (P2.6).
///
/// # Errors
///
/// As [`register`].
pub fn heartbeat(body: &[u8]) -> Result<Heartbeat, RegistryError> {
    let given: wire::Heartbeat = read_object(body)?;
    let challenge = match (given.challenge, given.challenge_value) {
        (Some(ask), Some(expect)) => Some(challenge(ask, expect)?),
        (None, None) => None,
        _ => {
            return Err(RegistryError::malformed(
                "challenge",
                "expected challenge and challengeValue together, or neither",
            ));
        }
    };
    let drain_left = given
        .drain_deadline
        .map(|left| checks::seconds("drainDeadline", left))
        .transpose()?;
    let acks = given.acks.unwrap_or_default();
    for ack in &acks {
        checks::text("acks", ack, checks::MAX_TOKEN_BYTES)?;
    }
    Ok(Heartbeat {
        session: session("sessionId", given.session_id)?,
        headroom: given.headroom,
        draining: given.draining,
        drain_left,
        challenge,
        acks,
    })
}

/// Reads the body of a release: one item or a list of them (P2.8).
///
/// # Errors
///
/// As [`register`].
pub fn release(body: &[u8]) -> Result<Vec<Release>, RegistryError> {
    let items: Vec<wire::ReleaseItem> = match first(body) {
        Some(b'{') => vec![read(body)?],
        Some(b'[') => read(body)?,
        _ => {
            return Err(RegistryError::Malformed(
                "expected a JSON object, or a list of them".to_owned(),
            ));
        }
    };
    items
        .into_iter()
        .enumerate()
        .map(|(at, item)| {
            let place = |member: &str| format!("[{at}].{member}");
            checks::namespace(place("namespace"), &item.namespace)?;
            checks::id(place("id"), &item.id)?;
            let epoch = item
                .epoch
                .map(|epoch| checks::placement_epoch(place("epoch"), &epoch))
                .transpose()?;
            Ok(Release {
                session: session("sessionId", item.session_id)?,
                key: PlacementKey::single(item.namespace, item.id),
                epoch,
            })
        })
        .collect()
}

/// Reads the body of a deregister (P2.9).
///
/// # Errors
///
/// As [`register`].
pub fn deregister(body: &[u8]) -> Result<SessionId, RegistryError> {
    let given: wire::Deregister = read_object(body)?;
    session("sessionId", given.session_id)
}

/// P9.4.
fn refuse_hostname_aware(given: &wire::Register) -> Result<(), RegistryError> {
    let named = [
        ("hostname", given.hostname.is_some()),
        ("env", given.env.is_some()),
        ("envs", given.envs.is_some()),
        ("takeover", given.takeover.is_some()),
        ("epoch", given.epoch.is_some_and(|epoch| epoch != 0)),
    ];
    match named.into_iter().find(|(_, is_there)| *is_there) {
        None => Ok(()),
        Some((name, _)) => Err(RegistryError::Malformed(format!(
            "{name} requires hostname-aware mode"
        ))),
    }
}

fn namespaces(given: Vec<String>) -> Result<Vec<Arc<str>>, RegistryError> {
    if given.is_empty() || given.len() > MAX_NAMESPACES {
        return Err(RegistryError::malformed(
            "namespaces",
            format_args!("expected 1 to {MAX_NAMESPACES} namespaces"),
        ));
    }
    let mut seen = BTreeSet::new();
    for (at, namespace) in given.iter().enumerate() {
        let place = format_args!("namespaces[{at}]");
        checks::namespace(place, namespace)?;
        if !seen.insert(namespace.as_str()) {
            return Err(RegistryError::malformed(
                place,
                "expected each namespace once",
            ));
        }
    }
    drop(seen);
    Ok(given.into_iter().map(Arc::from).collect())
}

fn instances(
    served: &[Arc<str>],
    given: std::collections::BTreeMap<String, Vec<String>>,
) -> Result<Vec<PlacementKey>, RegistryError> {
    let env: Arc<str> = PlacementKey::SINGLE.into();
    let mut keys = Vec::with_capacity(given.values().map(Vec::len).sum());
    for (namespace, ids) in given {
        // What is not among these may be anything, and is not shown.
        let Some(namespace) = served.iter().find(|served| ***served == *namespace) else {
            return Err(RegistryError::malformed(
                "instances",
                "expected only namespaces that are among the worker's own",
            ));
        };
        for (at, id) in ids.into_iter().enumerate() {
            checks::id(format_args!("instances.{namespace}[{at}]"), &id)?;
            keys.push(PlacementKey::new(
                Arc::clone(&env),
                Arc::clone(namespace),
                id,
            ));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

fn challenge(ask: String, expect: Secret) -> Result<Challenge, RegistryError> {
    checks::text("challenge", &ask, checks::MAX_TOKEN_BYTES)?;
    checks::text("challengeValue", expect.expose(), checks::MAX_TOKEN_BYTES)?;
    Ok(Challenge { ask, expect })
}

fn previous(id: String) -> Result<SessionId, RegistryError> {
    session("prevSessionId", id)
}

fn session(place: &'static str, id: String) -> Result<SessionId, RegistryError> {
    checks::text(place, &id, checks::MAX_SESSION_ID_BYTES)?;
    Ok(SessionId::new(id))
}
