//! What `claims.pinboard` lets a principal do (P2.2).

use std::net::IpAddr;

use ipnet::IpNet;

/// What `claims.pinboard` lets a principal do. A missing list admits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Namespaces, exact or `*`.
    pub namespaces: Vec<String>,
    /// Hosts that an advertised URL may name.
    pub backend_hosts: Vec<BackendHostRule>,
    /// Hostnames: exact, `.suffix`, or `*`.
    pub hostnames: Vec<String>,
    /// Environments, exact or `*`.
    pub envs: Vec<String>,
}

/// One entry of `allowedBackendHosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendHostRule {
    /// `*`.
    Any,
    /// A hostname, in lower case.
    Name(String),
    /// An address or a block of them.
    Block(IpNet),
}

impl Grants {
    /// Whether `ns` is among its namespaces.
    #[must_use]
    pub fn covers_namespace(&self, ns: &str) -> bool {
        self.namespaces
            .iter()
            .any(|granted| granted == "*" || granted == ns)
    }

    /// Whether `env` is among its environments; everything is, in single mode (`*`).
    #[must_use]
    pub fn covers_env(&self, env: &str) -> bool {
        env == "*"
            || self
                .envs
                .iter()
                .any(|granted| granted == "*" || granted == env)
    }

    /// Whether `hostname` is among its hostnames; everything is, in single mode (`*`).
    #[must_use]
    pub fn covers_hostname(&self, hostname: &str) -> bool {
        hostname == "*"
            || self.hostnames.iter().any(|granted| {
                granted == "*"
                    || granted == hostname
                    || (granted.starts_with('.') && hostname.ends_with(granted.as_str()))
            })
    }

    /// Whether nothing is kept from it: `*` in every list that is about what is served.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        let any = |list: &[String]| list.iter().any(|granted| granted == "*");
        any(&self.namespaces)
    }

    /// Whether a host, by its name as advertised (lower case, no port) and one of the addresses behind it, is allowed.
    #[must_use]
    pub fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        self.backend_hosts.iter().any(|rule| match rule {
            BackendHostRule::Any => true,
            BackendHostRule::Name(name) => name == host,
            BackendHostRule::Block(block) => block.contains(&address),
        })
    }
}
