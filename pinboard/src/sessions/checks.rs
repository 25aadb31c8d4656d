//! What texts from outside may be, before they become keys, headers and lines of a log.

use pinned_wire::epoch;
use pinned_wire::ids::{invalid_id_reason, invalid_namespace_reason};
use pinned_wire::registry::{LONGEST_DEADLINE, Secret};

use super::RegistryError;

/// The longest client id, in bytes.
pub(crate) const MAX_CLIENT_ID_BYTES: usize = 256;
/// The longest namespace, in bytes.
pub(crate) const MAX_NAMESPACE_BYTES: usize = 256;
/// The longest session id, in bytes; ours have 32.
pub(crate) const MAX_SESSION_ID_BYTES: usize = 128;
/// The longest challenge, secret, and id of a message, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 1024;

/// What the control plane answers itself, and no worker can serve.
const RESERVED: [&str; 4] = ["/registry", "/healthz", "/readyz", "/metrics"];

/// Why a namespace cannot be registered, or asked about.
pub(crate) fn namespace_reason(namespace: &str) -> Option<&'static str> {
    if namespace.len() > MAX_NAMESPACE_BYTES {
        Some("namespace must be at most 256 bytes")
    } else if RESERVED.contains(&namespace) {
        Some("namespace is reserved for the control plane's own routes")
    } else {
        invalid_namespace_reason(namespace)
    }
}

/// Checks a namespace.
pub(crate) fn namespace(
    place: impl std::fmt::Display,
    namespace: &str,
) -> Result<(), RegistryError> {
    check(place, namespace_reason(namespace))
}

/// Checks an id.
pub(crate) fn id(place: impl std::fmt::Display, id: &str) -> Result<(), RegistryError> {
    check(place, invalid_id_reason(id))
}

fn check(place: impl std::fmt::Display, reason: Option<&'static str>) -> Result<(), RegistryError> {
    match reason {
        None => Ok(()),
        Some(reason) => Err(RegistryError::malformed(place, reason)),
    }
}

/// Checks a text that is kept and shown: not empty, not too long, no control characters.
pub(crate) fn text(place: &'static str, text: &str, longest: usize) -> Result<(), RegistryError> {
    if text.is_empty() || text.len() > longest || text.contains(char::is_control) {
        return Err(RegistryError::malformed(
            place,
            format_args!("expected 1 to {longest} bytes of text without control characters"),
        ));
    }
    Ok(())
}

/// Checks a secret, which must fit into a header.
pub(crate) fn secret(place: &'static str, secret: &Secret) -> Result<(), RegistryError> {
    let text = secret.expose();
    if text.is_empty()
        || text.len() > MAX_TOKEN_BYTES
        || !text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(RegistryError::malformed(
            place,
            format_args!("expected 1 to {MAX_TOKEN_BYTES} visible ASCII characters"),
        ));
    }
    Ok(())
}

/// Reads a placement epoch.
pub(crate) fn placement_epoch(
    place: impl std::fmt::Display,
    text: &str,
) -> Result<u64, RegistryError> {
    epoch::parse(text.as_bytes()).map_err(|_| {
        RegistryError::malformed(place, "expected a placement epoch in decimal digits")
    })
}

/// Reads what is left until a deadline, in seconds.
pub(crate) fn seconds(
    place: &'static str,
    seconds: f64,
) -> Result<std::time::Duration, RegistryError> {
    std::time::Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|left| *left <= LONGEST_DEADLINE)
        .ok_or_else(|| {
            RegistryError::malformed(
                place,
                format_args!("expected seconds from 0 to {}", LONGEST_DEADLINE.as_secs()),
            )
        })
}
