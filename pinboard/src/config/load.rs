//! All of it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::time::Duration;

use pinned_domain::Domain;
use pinned_wire::registry::Secret;

use super::environment::Environment;
use super::limits::connections_within;
use super::{ConfigError, PostgresTarget, RedisUrl, dev, variables};
use crate::logs::LogFilter;
use crate::settings::Settings;

/// The largest whole number that JSON and Lua keep exactly.
const LARGEST_EPOCH: u64 = (1 << 53) - 1;

/// Everything that a node is told by its environment, checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the state of the fleet is kept.
    pub store: StoreConfig,
    /// Who may do what.
    pub passport: PassportConfig,
    /// Where durable work is found again; there is no scanner without.
    pub scanner: Option<PostgresTarget>,
    /// What is logged.
    pub log_filter: LogFilter,
    /// The rest.
    pub settings: Settings,
}

/// Where the state of the fleet is kept (`REDIS_URL`).
#[derive(Clone, Debug)]
pub enum StoreConfig {
    /// In this process, for one dev node.
    Memory,
    /// In a Redis that the nodes share.
    Redis(RedisUrl),
}

/// Who may do what (`PINBOARD_PASSPORT`).
#[derive(Clone, Debug)]
pub enum PassportConfig {
    /// The providers and rules, as JSON.
    Json(Secret),
    /// One key with every scope and claim: a dev node's.
    Dev {
        /// Its token.
        token: Secret,
        /// Whether the token was made for this start, and is known to nobody yet.
        fresh: bool,
    },
}

impl Config {
    /// Reads the environment of this process; `open_files` is how many files it may have open, as
    /// [`raise_open_files`](super::raise_open_files) tells.
    ///
    /// # Errors
    ///
    /// The first variable that cannot be used.
    pub fn load(domain: &Domain, open_files: Option<u64>) -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var_os(name), domain, open_files)
    }

    /// Reads an environment by `lookup`; a variable that is empty counts as unset. The domain makes the token of a dev node
    /// that is given none.
    ///
    /// # Errors
    ///
    /// The first variable that cannot be used.
    ///
    /// ```
    /// use pinboard::config::{Config, StoreConfig};
    /// use pinned_domain::Domain;
    ///
    /// let config = Config::from_lookup(|_| None, &Domain::real(), Some(1024))?;
    /// assert!(matches!(config.store, StoreConfig::Memory));
    /// assert_eq!(config.listen, ([127, 0, 0, 1], 8080).into());
    /// # Ok::<(), pinboard::config::ConfigError>(())
    /// ```
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        domain: &Domain,
        open_files: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let environment = Environment::new(&lookup);
        let store = environment
            .read(&variables::REDIS_URL, |value| match value {
                "memory:" => Some(StoreConfig::Memory),
                url => RedisUrl::parse(url).map(StoreConfig::Redis),
            })?
            .unwrap_or(StoreConfig::Memory);
        let dev = matches!(store, StoreConfig::Memory);
        if dev {
            dev::guard(&environment)?;
        }
        let passport = passport(&environment, dev, domain)?;
        Ok(Self {
            listen: listen(&environment, &passport)?,
            scanner: environment
                .read(&variables::POSTGRES, |dsn| PostgresTarget::parse(dsn).ok())?,
            log_filter: environment
                .read(&variables::LOG_LEVEL, LogFilter::parse)?
                .unwrap_or_default(),
            settings: settings(&environment, dev, open_files)?,
            store,
            passport,
        })
    }

    /// Whether this is a dev node: one that keeps the state of the fleet in its own memory.
    #[must_use]
    pub fn is_dev(&self) -> bool {
        self.settings.dev
    }
}

fn listen(
    environment: &Environment<'_>,
    passport: &PassportConfig,
) -> Result<SocketAddr, ConfigError> {
    let port = environment.number(&variables::PORT, 0..=u64::from(u16::MAX))?;
    let port = port.and_then(|port| u16::try_from(port).ok());
    let bind = environment.read(&variables::BIND, |value| value.parse::<IpAddr>().ok())?;
    // A token that was only just made up must not be all that stands between a network and the fleet (P1.4).
    let default = match passport {
        PassportConfig::Dev { .. } => Ipv4Addr::LOCALHOST,
        PassportConfig::Json(_) => Ipv4Addr::UNSPECIFIED,
    };
    Ok(SocketAddr::new(
        bind.unwrap_or(default.into()),
        port.unwrap_or(8080),
    ))
}

fn passport(
    environment: &Environment<'_>,
    dev: bool,
    domain: &Domain,
) -> Result<PassportConfig, ConfigError> {
    let token = environment.read(&variables::TOKEN, |value| {
        let visible = value.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then(|| Secret::new(value))
    })?;
    if let Some(json) = environment.get(&variables::PASSPORT)? {
        return Ok(PassportConfig::Json(Secret::new(json)));
    }
    if !dev {
        return Err(ConfigError::new(
            &variables::PASSPORT,
            format!(
                "is not set; without one nobody could register or operate anything. It takes {}",
                variables::PASSPORT.takes
            ),
        ));
    }
    Ok(match token {
        Some(token) => PassportConfig::Dev {
            token,
            fresh: false,
        },
        None => PassportConfig::Dev {
            token: Secret::new(domain.token_hex(24)),
            fresh: true,
        },
    })
}

fn settings(
    environment: &Environment<'_>,
    dev: bool,
    open_files: Option<u64>,
) -> Result<Settings, ConfigError> {
    const HOUR_MS: u64 = 3_600_000;
    let defaults = Settings::default();
    let millis = |value: Option<u64>, default| value.map_or(default, Duration::from_millis);
    let lease_ttl = environment.number(&variables::LEASE_TTL, 100..=HOUR_MS)?;
    let sweep_interval = environment.number(&variables::SWEEP_INTERVAL, 10..=HOUR_MS)?;
    let shards = environment.number(&variables::SHARDS, 1..=1024)?;
    let epoch = environment.number(&variables::EPOCH, 0..=LARGEST_EPOCH)?;
    let max_connections = environment.number(&variables::MAX_CONNECTIONS, 1..=10_000_000)?;
    let hostname_aware = environment.read(&variables::HOSTNAME_AWARE, |value| {
        match value.to_ascii_lowercase().as_str() {
            "on" | "1" | "true" | "yes" => Some(true),
            "off" | "0" | "false" | "no" => Some(false),
            _ => None,
        }
    })?;
    if hostname_aware == Some(true) {
        return Err(ConfigError::new(
            &variables::HOSTNAME_AWARE,
            "is on, and hostname-aware mode comes with the next release; unset it, or set it to off",
        ));
    }
    Ok(Settings {
        lease_ttl: millis(lease_ttl, defaults.lease_ttl),
        sweep_interval: millis(sweep_interval, defaults.sweep_interval),
        shards: shards
            .and_then(|shards| u16::try_from(shards).ok())
            .unwrap_or(defaults.shards),
        epoch: epoch.unwrap_or(defaults.epoch),
        dev,
        max_connections: max_connections
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or_else(|| connections_within(open_files)),
        lanes: std::thread::available_parallelism().map_or(1, NonZero::get),
    })
}
