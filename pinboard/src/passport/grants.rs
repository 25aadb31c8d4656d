//! What `claims.pinboard` lets a principal do (P2.2).

use std::net::IpAddr;

use serde_json::{Map, Value};
use url::Host;

use super::document::{Malformed, Member};
use super::{BackendHostRule, backend_rule, special};

/// The member of the claims that is about pinboard.
const CLAIM: &str = "pinboard";
const LISTS: [&str; 4] = ["namespaces", "allowedBackendHosts", "hostnames", "envs"];

/// What `claims.pinboard` lets a principal do. A missing list admits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Namespaces, exact or `*`.
    pub namespaces: Vec<String>,
    /// Hosts that an advertised URL may name.
    pub backend_hosts: Vec<BackendHostRule>,
    /// Hostnames in lower case: exact, `.suffix`, or `*`.
    pub hostnames: Vec<String>,
    /// Environments, exact or `*`.
    pub envs: Vec<String>,
}

/// What becomes of a member that no grant has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It is a mistake: the claims were written for pinboard.
    Refused,
    /// It belongs to somebody else: an issuer writes for many.
    Ignored,
}

impl Grants {
    /// Everything that can be granted.
    #[must_use]
    pub fn all() -> Self {
        let any = || vec!["*".to_owned()];
        Self {
            namespaces: any(),
            backend_hosts: vec![BackendHostRule::Any],
            hostnames: any(),
            envs: any(),
        }
    }

    /// Reads the member `pinboard` of `claims`, which `path` leads to; without one, nothing is granted.
    pub(super) fn read(
        claims: &Map<String, Value>,
        path: &str,
        unknown: Unknown,
    ) -> Result<Self, Malformed> {
        let Some(value) = claims.get(CLAIM) else {
            return Ok(Self::default());
        };
        let member = Member::new(path, value).with_step(CLAIM);
        let fields = match unknown {
            Unknown::Refused => member.object(&LISTS)?,
            Unknown::Ignored => member.any_object()?,
        };
        Ok(Self {
            namespaces: each(fields.optional(LISTS[0]), namespace)?,
            backend_hosts: each(fields.optional(LISTS[1]), backend_host)?,
            hostnames: each(fields.optional(LISTS[2]), hostname)?,
            envs: each(fields.optional(LISTS[3]), |env| {
                env.text().map(str::to_owned)
            })?,
        })
    }

    /// Whether `ns` is among its namespaces.
    #[must_use]
    pub fn covers_namespace(&self, ns: &str) -> bool {
        covers(&self.namespaces, ns)
    }

    /// Whether `env` is among its environments; everything is, in single mode (`*`).
    #[must_use]
    pub fn covers_env(&self, env: &str) -> bool {
        env == "*" || covers(&self.envs, env)
    }

    /// Whether `hostname` (lower case, no port) is among its hostnames; everything is, in single mode (`*`).
    ///
    /// A suffix covers what stands before it, never the name behind its dot alone.
    #[must_use]
    pub fn covers_hostname(&self, hostname: &str) -> bool {
        let ends_with = |granted: &String| granted.starts_with('.') && hostname.ends_with(granted);
        hostname == "*"
            || !hostname.starts_with('.')
                && (covers(&self.hostnames, hostname) || self.hostnames.iter().any(ends_with))
    }

    /// Whether no worker of a fleet in single mode is kept from it: `*` among its namespaces. Hostnames and environments are not
    /// asked there (P2.2), and where a worker may stand says nothing of what may be seen.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        covers(&self.namespaces, "*")
    }

    /// As [`is_unrestricted`](Self::is_unrestricted), of a hostname-aware fleet: `*` among its hostnames and environments too.
    #[must_use]
    pub fn is_unrestricted_in_every_hostname(&self) -> bool {
        self.is_unrestricted() && covers(&self.hostnames, "*") && covers(&self.envs, "*")
    }

    /// Whether a host, by its name as advertised (lower case, no port, no dot at its end) and one of the addresses behind it, is
    /// allowed.
    ///
    /// Addresses that no worker has, such as link-local ones, are allowed only by an entry that lies within their kind; neither
    /// `*`, nor a name, nor `0.0.0.0/0` is about them.
    #[must_use]
    pub fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let special = special::kind_of(address);
        self.backend_hosts.iter().any(|rule| match (rule, special) {
            (BackendHostRule::Block(block), None) => block.contains(&address),
            (BackendHostRule::Block(block), Some(kind)) => {
                block.contains(&address) && kind.block.contains(block)
            }
            (BackendHostRule::Any, None) => true,
            (BackendHostRule::Name(name), None) => name == host,
            (BackendHostRule::Any | BackendHostRule::Name(_), Some(_)) => false,
        })
    }

    /// Whether some address behind `host` could be allowed, before any is known: what cannot need not be looked up.
    pub(super) fn may_allow(&self, host: &str) -> bool {
        self.backend_hosts.iter().any(|rule| match rule {
            BackendHostRule::Any | BackendHostRule::Block(_) => true,
            BackendHostRule::Name(name) => name == host,
        })
    }
}

fn covers(list: &[String], name: &str) -> bool {
    list.iter().any(|granted| granted == "*" || granted == name)
}

// --- Entries -------------------------------------------------------------------------------------------------------------------

fn each<T>(
    list: Option<Member<'_>>,
    read: impl Fn(&Member<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    list.map_or(Ok(Vec::new()), |list| {
        list.items()?.iter().map(read).collect()
    })
}

fn namespace(entry: &Member<'_>) -> Result<String, Malformed> {
    let text = entry.text()?;
    match pinned_wire::ids::invalid_namespace_reason(text) {
        Some(reason) if text != "*" => Err(entry.fail(format!("`*` or a namespace: {reason}"))),
        _ => Ok(text.to_owned()),
    }
}

fn backend_host(entry: &Member<'_>) -> Result<BackendHostRule, Malformed> {
    entry.text()?.parse().map_err(|error| entry.fail(error))
}

fn hostname(entry: &Member<'_>) -> Result<String, Malformed> {
    let expected = || entry.fail("`*`, a hostname, or `.` and the end of one");
    let text = entry.text()?;
    if text == "*" {
        return Ok(text.to_owned());
    }
    let (dot, name) = match text.strip_prefix('.') {
        Some(name) => (".", name),
        None => ("", text),
    };
    // As the URL standard reads them, so that every spelling of a name is one.
    match Host::parse(name).map_err(|_| expected())? {
        Host::Domain(name) => match backend_rule::hostname(&name) {
            Some(name) => Ok(format!("{dot}{name}")),
            None => Err(expected()),
        },
        // Clients may ask for an address.
        address if dot.is_empty() && address.to_string() == text => Ok(address.to_string()),
        _ => Err(expected()),
    }
}
