//! Placement epochs: the number that grows each time an id is placed, and fences off earlier holders.

/// The highest epoch there is: epochs are stored as 64-bit signed integers.
pub const MAX: u64 = i64::MAX as u64;

/// The value of a `pinboard-epoch` header is not an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed placement epoch")]
pub struct MalformedEpoch;

/// Reads the value of a `pinboard-epoch` header: ASCII digits and nothing else, with any number of leading zeros.
///
/// # Errors
/// [`MalformedEpoch`] for anything else, and for a number above [`MAX`].
///
/// ```
/// use pinned_wire::epoch;
///
/// assert_eq!(epoch::parse(b"007"), Ok(7));
/// assert_eq!(epoch::parse(b"+7"), Err(epoch::MalformedEpoch));
/// ```
pub fn parse(value: &[u8]) -> Result<u64, MalformedEpoch> {
    if value.is_empty() {
        return Err(MalformedEpoch);
    }
    value
        .iter()
        .try_fold(0_u64, |epoch, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            epoch.checked_mul(10)?.checked_add(digit)
        })
        .filter(|epoch| *epoch <= MAX)
        .ok_or(MalformedEpoch)
}
