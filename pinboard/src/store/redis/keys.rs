//! The names of keys.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::{PlacementKey, SessionId};

/// What all keys begin with.
const PREFIX: &str = "pinboard:";

/// What a component of a key does not keep as it is: above all the colon between components, the braces of a hash tag, the
/// signs of a pattern but for the star, and the percent sign itself.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'*')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// What lies in one hash slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A share of the placements.
    Shard(u16),
    /// What the whole fleet shares.
    Fleet,
}

/// An id as the data of its shard names it, `<env>:<ns>:<id>`, and that shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) shard: u16,
    pub(super) text: String,
}

// ===== impl Place =====

impl Place {
    /// All places of a store, the shards first.
    pub(super) fn all(shards: u16) -> impl Iterator<Item = Self> {
        Self::shards(shards).chain([Self::Fleet])
    }

    pub(super) fn shards(shards: u16) -> impl Iterator<Item = Self> {
        (0..shards).map(Self::Shard)
    }

    /// The key `name` of this place.
    pub(super) fn key(self, name: impl fmt::Display) -> String {
        format!("{PREFIX}{self}:{name}")
    }

    /// The key `name` of this place that belongs to `whose`, which may come from outside.
    pub(super) fn key_of(self, name: &str, whose: &str) -> String {
        self.key(format_args!(
            "{name}:{}",
            utf8_percent_encode(whose, ENCODED)
        ))
    }

    /// What all scripts of a place are given first.
    pub(super) fn keys(self) -> Vec<String> {
        let names: &[&str] = match self {
            Self::Shard(_) => &["boot", "sessions", "epoch", "counts"],
            Self::Fleet => &[
                "boot",
                "versions",
                "sessions",
                "records",
                "updates",
                "addresses",
                "changes",
                "expiries",
                "drains",
                "namespaces",
                "clients",
                "latest",
                "client-records",
                "ended",
            ],
        };
        names.iter().map(|name| self.key(name)).collect()
    }

    /// The row of a member of this shard.
    pub(super) fn row(self, member: &str) -> String {
        self.key(format_args!("row:{member}"))
    }

    /// The members whose rows name `session`.
    pub(super) fn rows_of(self, session: &SessionId) -> String {
        self.key_of("rows", session.as_str())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard(n) => write!(f, "{{s{n}}}"),
            Self::Fleet => f.write_str("{fleet}"),
        }
    }
}

// ===== impl Member =====

impl Member {
    pub(super) fn new(key: &PlacementKey, shards: u16) -> Self {
        let text = member(&key.env, &key.ns, &key.id);
        // The same on every node, for ever.
        let hash = xxh3_64(text.as_bytes());
        let shard = hash % u64::from(shards.max(1));
        Self {
            shard: u16::try_from(shard).unwrap_or_default(),
            text,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place::Shard(self.shard)
    }

    /// The key of its row.
    pub(super) fn row(&self) -> String {
        self.place().row(&self.text)
    }
}

fn member(env: &str, ns: &str, id: &str) -> String {
    format!(
        "{}:{}",
        namespace(env, ns),
        utf8_percent_encode(id, ENCODED)
    )
}

/// `<env>:<ns>`.
pub(super) fn namespace(env: &str, ns: &str) -> String {
    let [env, ns] = [env, ns].map(|text| utf8_percent_encode(text, ENCODED));
    format!("{env}:{ns}")
}

/// The `<env>:<ns>` of a member.
pub(super) fn namespace_of(member: &str) -> &str {
    // Its last colon: there is none in what is encoded.
    member
        .rsplit_once(':')
        .map_or("", |(namespace, _)| namespace)
}

/// The pattern of all members of `(env, ns)`.
pub(super) fn pattern(env: &str, ns: &str) -> String {
    format!("{}:*", namespace(env, ns).replace('*', "\\*"))
}

/// What [`namespace`] has encoded.
pub(super) fn parse_namespace(text: &str) -> Option<(Arc<str>, Arc<str>)> {
    let (env, ns) = text.split_once(':')?;
    Some((decode(env)?, decode(ns)?))
}

/// What [`Member`] has encoded.
pub(super) fn parse_member(text: &str) -> Option<PlacementKey> {
    let mut parts = text.split(':').map(decode);
    let key = PlacementKey {
        env: parts.next()??,
        ns: parts.next()??,
        id: parts.next()??,
    };
    parts.next().is_none().then_some(key)
}

/// Whose row a key is.
pub(super) fn parse_row(key: &[u8]) -> Option<PlacementKey> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?;
    let (shard, member) = rest.strip_prefix("{s")?.split_once("}:row:")?;
    shard
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(())?;
    parse_member(member)
}

fn decode(text: &str) -> Option<Arc<str>> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // What comes from outside stays in its component, and comes back as it was.
        #[test]
        fn a_row_is_found_by_its_key_alone(env in ".{0,8}", ns in ".{0,8}", id in any::<String>(), shards in 1..100_u16) {
            let key = PlacementKey::new(env, ns, id);
            let member = Member::new(&key, shards);
            prop_assert_eq!(member.text.matches(':').count(), 2);
            let stays = !member.text.contains(['{', '}', '\0', '\r', '\n', ' ', '[', '?', '\\']);
            prop_assert!(stays, "{}", member.text);
            prop_assert_eq!(parse_member(&member.text), Some(key.clone()));
            prop_assert_eq!(parse_row(member.row().as_bytes()), Some(key));
            prop_assert!(member.shard < shards);
        }

        #[test]
        fn no_key_breaks_the_reader(key in any::<Vec<u8>>(), text in any::<String>()) {
            let _ = parse_row(&key);
            let _ = parse_member(&text);
            let _ = parse_namespace(&text);
        }

        #[test]
        fn a_session_stays_in_its_key(session in any::<String>()) {
            let key = Place::Shard(3).rows_of(&SessionId::new(session));
            let rest = key.strip_prefix("pinboard:{s3}:rows:");
            let stays = rest.is_some_and(|rest| !rest.contains([':', '{', '}']));
            prop_assert!(stays, "{}", key);
        }
    }

    #[test]
    fn ids_spread_over_the_shards() {
        let mut rows = [0; 16];
        for n in 0..16_000 {
            let key = PlacementKey::single("/counters", n.to_string());
            rows[usize::from(Member::new(&key, 16).shard)] += 1;
        }
        assert!(
            rows.iter().all(|rows| (800..1_200).contains(rows)),
            "{rows:?}"
        );
    }

    #[test]
    fn the_shard_of_an_id_never_changes() {
        // These are what a running fleet has on disk.
        let key = PlacementKey::single("/counters", "alice");
        let member = Member::new(&key, 16);
        assert_eq!(member.row(), "pinboard:{s12}:row:*:/counters:alice");
    }
}
