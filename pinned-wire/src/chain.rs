//! The chain of calls that a call between instances belongs to: who waits for it, and under which turns.
//!
//! A calling worker writes it into the header [`CHAIN`](crate::headers::CHAIN), pinboard copies it into the `chain` claim
//! of the attestation, and a worker whose instance the chain comes back to sees that the call would wait for itself.
//! The two forms carry the same [`Link`]s, outermost first: one string each in the claim, divided by ` > ` in the header.
//!
//! ```
//! use pinned_wire::chain::{self, Held, Link};
//!
//! let links = [
//!     Link::new("/orders", "7", Held::Exclusive),
//!     Link::new("/stock", "bolts", Held::Shared).called("5f0c.1"),
//! ];
//! let header = chain::header(&links);
//! assert_eq!(header, "/orders/7 exclusive > /stock/bolts shared 5f0c.1");
//! let read: Vec<Link> = chain::read(&header)?.into_iter().map(Link::parse).collect::<Result<_, _>>()?;
//! assert_eq!(read, links);
//! # Ok::<(), chain::MalformedChain>(())
//! ```

use std::fmt;

use crate::ids::{invalid_id_reason, invalid_namespace_reason};

/// The most links of a chain: as many as calls may be deep.
pub const MOST_LINKS: usize = 50;

/// The longest header, in bytes: it goes on in a token, among other headers that have a limit together.
pub const MOST_BYTES: usize = 16 << 10;

/// The longest name of a call, in bytes.
const MOST_CALL: usize = 64;

/// Divides links. No namespace, id or name of a call has such a sign.
const BETWEEN: char = '>';

/// One call of a chain, and the turn that its instance held when it made the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    name: String,
    held: Held,
    call: Option<String>,
}

/// The turn of an instance that a call is made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// None: another call of the instance may have one.
    Nothing,
    /// A shared turn.
    Shared,
    /// The exclusive turn.
    Exclusive,
}

/// Something is not a chain of calls, or is one that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed call chain")]
pub struct MalformedChain;

impl Held {
    fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Nothing, Self::Shared, Self::Exclusive]
            .into_iter()
            .find(|held| held.as_str() == text)
    }
}

impl Link {
    /// A call that runs on the instance `id` of `ns` (which has its slash) under `held`.
    #[must_use]
    pub fn new(ns: &str, id: &str, held: Held) -> Self {
        Self {
            name: format!("{ns}/{id}"),
            held,
            call: None,
        }
    }

    /// Says what the calling worker knows the next call by: letters, digits and `.`, at most 64 of them.
    ///
    /// It means nothing to anybody else, and is the same for no other call of the fleet.
    #[must_use]
    pub fn called(mut self, call: impl Into<String>) -> Self {
        self.call = Some(call.into());
        self
    }

    /// The instance, `<ns>/<id>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The turn it held.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    /// What the calling worker knows the next call by. A link without one is followed by a call on the same worker.
    #[must_use]
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// Reads one link.
    ///
    /// # Errors
    ///
    /// [`MalformedChain`] for anything that is not one.
    pub fn parse(text: &str) -> Result<Self, MalformedChain> {
        let mut fields = text.split(' ');
        let (name, held) = fields.next().zip(fields.next()).ok_or(MalformedChain)?;
        let call = fields.next();
        let is_name = name.rsplit_once('/').is_some_and(|(ns, id)| {
            invalid_namespace_reason(ns).is_none() && invalid_id_reason(id).is_none()
        });
        if !is_name || call.is_some_and(|call| !is_call(call)) || fields.next().is_some() {
            return Err(MalformedChain);
        }
        Ok(Self {
            name: name.to_owned(),
            held: Held::parse(held).ok_or(MalformedChain)?,
            call: call.map(str::to_owned),
        })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.held.as_str())?;
        match &self.call {
            Some(call) => write!(f, " {call}"),
            None => Ok(()),
        }
    }
}

fn is_call(text: &str) -> bool {
    (1..=MOST_CALL).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

/// The value of the header for `links`, outermost first. Of more than fit, the outermost are left out: a chain that comes
/// back to one of those is ended by its depth.
#[must_use]
pub fn header(links: &[Link]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(links.len());
    let mut bytes = 0;
    for link in links.iter().rev().take(MOST_LINKS) {
        let text = link.to_string();
        bytes += text.len() + 3;
        if bytes > MOST_BYTES {
            break;
        }
        texts.push(text);
    }
    texts.reverse();
    texts.join(" > ")
}

/// The links of a header, each as it stands in a claim.
///
/// # Errors
///
/// [`MalformedChain`] when there is none, when there are too many, or when one is not a link.
pub fn read(header: &str) -> Result<Vec<&str>, MalformedChain> {
    if header.len() > MOST_BYTES {
        return Err(MalformedChain);
    }
    let links: Vec<&str> = header
        .split(BETWEEN)
        .map(str::trim)
        .take(MOST_LINKS + 1)
        .collect();
    if links.len() > MOST_LINKS {
        return Err(MalformedChain);
    }
    for link in &links {
        Link::parse(link)?;
    }
    Ok(links)
}
