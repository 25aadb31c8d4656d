//! All of it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Domain;
use pinned_wire::registry::Secret;

use super::environment::Environment;
use super::limits::connections_within;
use super::{ConfigError, PostgresTarget, dev, variables};
use crate::logs::LogFilter;
use crate::passport::Passport;
use crate::settings::Settings;
use crate::store::RedisUrl;
use crate::upstream::Fetcher;

/// The largest whole number that JSON and Lua keep exactly.
const LARGEST_EPOCH: u64 = (1 << 53) - 1;

/// Each has a thread, a listener and connections to every worker.
const MOST_LANES: u64 = 256;

/// Everything that a node is told by its environment, checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the state of the fleet is kept.
    pub store: StoreConfig,
    /// Who may do what.
    pub passport: Passport,
    /// The key of a dev node that was given no passport.
    pub dev_key: Option<DevKey>,
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

/// The one key of a dev node that was given no passport: it has every scope and claim (P1.4).
#[derive(Clone, Debug)]
pub struct DevKey {
    /// Its token.
    pub token: Secret,
    /// Whether the token was made for this start, and is known to nobody yet.
    pub fresh: bool,
}

/// What reading an environment needs of the world.
#[derive(Clone)]
pub struct World {
    /// Makes the token of a dev node that is given none, and keeps the time of what is cached.
    pub domain: Domain,
    /// Gets the keys of those who issue tokens, once they are needed.
    pub fetcher: Arc<dyn Fetcher>,
    /// How many files this process may have open, as [`raise_open_files`](super::raise_open_files) tells.
    pub open_files: Option<u64>,
}

impl Config {
    /// Reads the environment of this process.
    ///
    /// # Errors
    ///
    /// The first variable that cannot be used.
    pub fn load(world: &World) -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var_os(name), world)
    }

    /// Reads an environment by `lookup`; a variable that is empty counts as unset.
    ///
    /// # Errors
    ///
    /// The first variable that cannot be used.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        world: &World,
    ) -> Result<Self, ConfigError> {
        let environment = Environment::new(&lookup);
        let store = store(&environment)?;
        let dev = matches!(store, StoreConfig::Memory);
        if dev {
            dev::guard(&environment)?;
        }
        let (passport, dev_key) = passport(&environment, dev, world)?;
        Ok(Self {
            listen: listen(&environment, dev_key.is_some())?,
            scanner: environment
                .read(&variables::POSTGRES, |dsn| PostgresTarget::parse(dsn).ok())?,
            log_filter: environment
                .read(&variables::LOG_LEVEL, LogFilter::parse)?
                .unwrap_or_default(),
            settings: settings(&environment, dev, world.open_files)?,
            store,
            passport,
            dev_key,
        })
    }

    /// Whether this is a dev node: one that keeps the state of the fleet in its own memory.
    #[must_use]
    pub fn is_dev(&self) -> bool {
        self.settings.dev
    }
}

fn store(environment: &Environment<'_>) -> Result<StoreConfig, ConfigError> {
    match environment.get(&variables::REDIS_URL)?.as_deref() {
        None | Some("memory:") => Ok(StoreConfig::Memory),
        Some(url) => match url.parse::<RedisUrl>() {
            Ok(url) => Ok(StoreConfig::Redis(url)),
            // It says why, and not what was given.
            Err(why) => Err(ConfigError::new(
                &variables::REDIS_URL,
                format!(
                    "is malformed: {why}; it takes {}",
                    variables::REDIS_URL.takes
                ),
            )),
        },
    }
}

fn listen(environment: &Environment<'_>, dev_key: bool) -> Result<SocketAddr, ConfigError> {
    let port = environment.number(&variables::PORT, 0..=u64::from(u16::MAX))?;
    let port = port.and_then(|port| u16::try_from(port).ok());
    let bind = environment.read(&variables::BIND, |value| value.parse::<IpAddr>().ok())?;
    // A token that was only just made up must not be all that stands between a network and the fleet (P1.4).
    let default = if dev_key {
        Ipv4Addr::LOCALHOST
    } else {
        Ipv4Addr::UNSPECIFIED
    };
    Ok(SocketAddr::new(
        bind.unwrap_or(default.into()),
        port.unwrap_or(8080),
    ))
}

fn passport(
    environment: &Environment<'_>,
    dev: bool,
    world: &World,
) -> Result<(Passport, Option<DevKey>), ConfigError> {
    if let Some(json) = environment.get(&variables::PASSPORT)? {
        let env = |name: &str| environment.text(name);
        let passport = Passport::parse(&json, env, &world.domain, &world.fetcher);
        let passport = passport
            .map_err(|error| ConfigError::explained(&variables::PASSPORT, &error.to_string()))?;
        return Ok((passport, None));
    }
    if !dev {
        return Err(ConfigError::new(
            &variables::PASSPORT,
            format!(
                "is not set, and without one nobody could register or operate anything; it takes {}",
                variables::PASSPORT.takes
            ),
        ));
    }
    let token = environment.get(&variables::TOKEN)?;
    let fresh = token.is_none();
    let token = token.unwrap_or_else(|| world.domain.token_hex(24));
    let passport =
        Passport::dev(&token).map_err(|_| ConfigError::malformed(&variables::TOKEN, &token))?;
    let token = Secret::new(token);
    Ok((passport, Some(DevKey { token, fresh })))
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
    let lanes = environment.number(&variables::LANES, 1..=MOST_LANES)?;
    let hostname_aware = environment.read(&variables::HOSTNAME_AWARE, switch)?;
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
        lanes: usize::try_from(lanes.unwrap_or_else(processors)).unwrap_or(1),
    })
}

/// How many processors the process may use, as far as there are lanes for them.
fn processors() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    u64::try_from(processors).map_or(MOST_LANES, |processors| processors.min(MOST_LANES))
}

/// Whether something is on.
fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}
