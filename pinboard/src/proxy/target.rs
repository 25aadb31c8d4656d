//! Which instance the target of a request names.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use pinned_wire::ids::{decode_id, invalid_id_reason, invalid_namespace_reason};

/// What the target of a request names: `/<ns>/<id>` and whatever follows.
///
/// It reads targets as the worker does, so that an odd spelling of an id leads both to the same instance, or nowhere.
///
/// ```
/// use pinboard::proxy::{Target, TargetError};
///
/// let target = Target::parse("/rooms/%61lice/messages?after=7")?;
/// assert_eq!((target.ns, &*target.id), ("/rooms", "alice"));
/// assert_eq!(Target::parse("/rooms").unwrap_err(), TargetError::NotFound);
/// # Ok::<(), TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The namespace, with its slash.
    pub ns: &'a str,
    /// The id, decoded.
    pub id: Cow<'a, str>,
}

/// The target names no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is nothing that could be found there: 404.
    #[error("Not Found")]
    NotFound,
    /// There is an id, but ids are not like that: 400 with the reason.
    #[error("{0}")]
    InvalidId(&'static str),
}

impl<'a> Target<'a> {
    /// Reads a raw path, with or without its query.
    ///
    /// # Errors
    ///
    /// As [`TargetError`] says.
    pub fn parse(raw: &'a str) -> Result<Self, TargetError> {
        let path = match memchr(b'?', raw.as_bytes()) {
            Some(query) => &raw[..query],
            None => raw,
        };
        let beyond = path.strip_prefix('/').ok_or(TargetError::NotFound)?;
        let slash = memchr(b'/', beyond.as_bytes()).ok_or(TargetError::NotFound)? + 1;
        let (ns, after) = (&path[..slash], &path[slash + 1..]);
        // Also when it is only spelled in another way: a namespace has one spelling.
        if invalid_namespace_reason(ns).is_some() {
            return Err(TargetError::NotFound);
        }
        let (segment, rest) = match memchr(b'/', after.as_bytes()) {
            Some(end) => after.split_at(end),
            None => (after, ""),
        };
        let climbs = climbs(rest);
        if invalid_id_reason(segment).is_none() && !climbs {
            // Nearly always: nothing is encoded, for no id has a percent sign.
            let id = Cow::Borrowed(segment);
            return Ok(Self { ns, id });
        }
        let id = decode_id(segment).map_err(|_| TargetError::InvalidId(NOT_TEXT))?;
        if id.contains('/') || climbs {
            return Err(TargetError::NotFound);
        }
        match invalid_id_reason(&id) {
            None => Ok(Self { ns, id }),
            Some(reason) => Err(TargetError::InvalidId(reason)),
        }
    }

    /// The first segment of a raw path, without its slash; what comes before the first slash of a path that has none at
    /// its start is no segment.
    pub(crate) fn first_segment(raw: &str) -> &str {
        let Some(beyond) = raw.strip_prefix('/') else {
            return "";
        };
        let end = memchr2(b'/', b'?', beyond.as_bytes()).unwrap_or(beyond.len());
        &beyond[..end]
    }
}

/// As [`invalid_id_reason`] says it of characters that ids do not have.
const NOT_TEXT: &str = "id must contain only [A-Za-z0-9._~-]";

/// Whether `rest`, what follows the id, leads out of the id when somebody on the way to the handler resolves its dot
/// segments: to another instance, or to routes that are the worker's own. Those that stay within are passed on as they are.
///
/// Some take a backslash for a slash, or decode before they resolve: it has to stay within whoever reads it.
fn climbs(rest: &str) -> bool {
    let rest = rest.as_bytes();
    if memchr2(b'.', b'%', rest).is_none() {
        return false;
    }
    let is_slash = |byte: u8, is_encoded: bool| byte == b'/' && !is_encoded;
    if rest.contains(&b'\\') || rest.contains(&b'%') {
        climbs_between(rest, is_slash)
            || climbs_between(rest, |byte, is_encoded| {
                is_slash(byte, is_encoded) || byte == b'\\' && !is_encoded
            })
            || climbs_between(rest, |byte, _| byte == b'/')
            || climbs_between(rest, |byte, _| matches!(byte, b'/' | b'\\'))
    } else {
        climbs_between(rest, is_slash)
    }
}

/// The same where segments end at what `ends_segment` says, of a byte and of whether it is percent-encoded.
fn climbs_between(rest: &[u8], ends_segment: impl Fn(u8, bool) -> bool) -> bool {
    let (mut depth, mut segment, mut at) = (0_i32, Segment::default(), 0);
    while at < rest.len() {
        let (byte, length) = unit(&rest[at..]);
        at += length;
        if ends_segment(byte, length > 1) {
            depth += std::mem::take(&mut segment).step();
            if depth < 0 {
                return true;
            }
        } else {
            segment.push(byte);
        }
    }
    depth + segment.step() < 0
}

/// The first byte, decoded once when it is percent-encoded, and how many bytes it takes.
fn unit(bytes: &[u8]) -> (u8, usize) {
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|digit| char::from(*digit).to_digit(16))
    };
    if bytes[0] == b'%'
        && let (Some(high), Some(low)) = (digit(1), digit(2))
    {
        // Two hex digits are less than 256.
        return ((high * 16 + low) as u8, 3);
    }
    (bytes[0], 1)
}

/// What is known of a segment while it is read.
#[derive(Default)]
struct Segment {
    dots: u8,
    others: bool,
}

impl Segment {
    fn push(&mut self, byte: u8) {
        if byte == b'.' {
            self.dots = self.dots.saturating_add(1);
        } else {
            self.others = true;
        }
    }

    /// How much deeper it leads.
    fn step(&self) -> i32 {
        match (self.dots, self.others) {
            (0 | 1, false) => 0,
            (2, false) => -1,
            _ => 1,
        }
    }
}
