//! What a node takes from its environment, and what it says of what it cannot take (P1.3, P1.4).

mod documents;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use pinboard::config::{Config, ConfigError, StoreConfig, VARIABLES, World};
use pinboard::passport::{OPERATOR_SCOPE, WORKER_SCOPE};
use pinboard::settings::Settings;
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_domain::Domain;

/// Nothing is fetched while an environment is read.
struct NoFetcher;

impl Fetcher for NoFetcher {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        panic!("{} is fetched", fetch.url)
    }
}

fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let world = World {
        domain: Domain::real(),
        fetcher: Arc::new(NoFetcher),
        open_files: Some(1024),
    };
    let lookup = |name: &str| {
        let (_, value) = pairs.iter().find(|(known, _)| *known == name)?;
        Some(OsString::from(*value))
    };
    Config::from_lookup(lookup, &world)
}

/// The one line that ends the start.
fn refused(pairs: &[(&str, &str)]) -> String {
    let error = read(pairs).map(|_| ()).expect_err("a refusal");
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line:?} is one line");
    assert!(line.starts_with(error.variable()), "{line}");
    line
}

const REDIS: (&str, &str) = ("REDIS_URL", "redis://127.0.0.1:6379");
const PASSPORT: (&str, &str) = (
    "PINBOARD_PASSPORT",
    r#"{"providers": [{"type": "staticToken", "id": "pinboard", "keys": [
        {"name": "ops", "token": "s3cret", "scopes": ["pinboard:operator"]}]}]}"#,
);

// P1.3
#[test]
fn an_empty_environment_has_the_defaults_of_a_dev_node() {
    for pairs in [
        &[][..],
        &[("REDIS_URL", "memory:")],
        &[("PORT", ""), ("REDIS_URL", "  ")],
    ] {
        let config = read(pairs).expect("defaults");
        assert_eq!(config.listen, ([127, 0, 0, 1], 8080).into());
        assert!(matches!(config.store, StoreConfig::Memory));
        assert!(config.scanner.is_none());
        assert!(config.is_dev());
        let defaults = Settings::default();
        assert_eq!(config.settings.lease_ttl, Duration::from_secs(15));
        assert_eq!(config.settings.sweep_interval, Duration::from_secs(1));
        assert_eq!((config.settings.shards, config.settings.epoch), (16, 0));
        assert_eq!(config.settings.lease_ttl, defaults.lease_ttl);
        // P5.12: half of what is left of 1,024 files.
        assert_eq!(config.settings.max_connections, 384);
        // Beyond P1.3.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(config.settings.lanes, processors.min(256));
    }
}

// P1.3
#[test]
fn every_variable_is_heard() {
    let config = read(&[
        REDIS,
        PASSPORT,
        ("PORT", "0"),
        ("BIND", "::1"),
        ("PINBOARD_LEASE_TTL_MS", "1000"),
        ("PINBOARD_SWEEP_INTERVAL_MS", "250"),
        ("PINBOARD_SHARDS", "64"),
        ("PINBOARD_HOSTNAME_AWARE", "off"),
        ("PINBOARD_EPOCH", "7"),
        ("PINBOARD_MAX_CONNECTIONS", "12"),
        ("PINBOARD_LANES", "3"),
        (
            "PINBOARD_DURABILITY_POSTGRES_URL",
            "postgres://reader@db/app",
        ),
        ("LOG_LEVEL", "warn,pinboard::scanner=debug"),
    ])
    .expect("all of them");
    assert_eq!(config.listen, "[::1]:0".parse().expect("an address"));
    assert!(matches!(config.store, StoreConfig::Redis(_)));
    assert!(!config.is_dev() && config.dev_key.is_none());
    assert_eq!(config.settings.lease_ttl, Duration::from_secs(1));
    assert_eq!(config.settings.sweep_interval, Duration::from_millis(250));
    assert_eq!((config.settings.shards, config.settings.epoch), (64, 7));
    assert_eq!(config.settings.max_connections, 12);
    assert_eq!(config.settings.lanes, 3);
    let scanner = config.scanner.expect("a scanner");
    assert_eq!(scanner.describe(), "PostgreSQL at db:5432/app");
}

// P1.3
#[test]
fn a_malformed_value_is_named_with_what_belongs_there() {
    for (name, values) in [
        ("PORT", &["x", "-1", "+1", "65536", "80 80", "1.5"][..]),
        ("BIND", &["localhost", "127.0.0.1:80", "*"]),
        (
            "PINBOARD_LEASE_TTL_MS",
            &["0", "99", "15s", "3600001", "1e3"],
        ),
        ("PINBOARD_SWEEP_INTERVAL_MS", &["0", "9", "never"]),
        ("PINBOARD_SHARDS", &["0", "1025", "sixteen"]),
        ("PINBOARD_HOSTNAME_AWARE", &["maybe", "2"]),
        ("PINBOARD_EPOCH", &["-1", "9007199254740992", "0x1"]),
        ("PINBOARD_MAX_CONNECTIONS", &["0", "many"]),
        ("PINBOARD_LANES", &["0", "257", "auto"]),
        ("LOG_LEVEL", &["verbose", "info,debug", "a=b"]),
        ("PINBOARD_ALLOW_DEV_IN_PRODUCTION", &["true", "0"]),
    ] {
        let variable = VARIABLES.iter().find(|variable| variable.name == name);
        let takes = variable.expect("a variable of the reference").takes;
        for value in values {
            let line = refused(&[(name, value)]);
            assert!(line.starts_with(name), "{line}");
            assert!(line.contains(value) && line.contains(takes), "{line}");
        }
    }
}

// P1.3, P1.5
#[test]
fn a_malformed_value_that_may_be_secret_is_not_shown() {
    for (name, value) in [
        ("REDIS_URL", "redis://:s3cret@"),
        ("REDIS_URL", "http://user:s3cret@redis"),
        ("REDIS_URL", "redis://user:s3cret@redis:port"),
        ("REDIS_URL", "s3cret"),
        (
            "PINBOARD_DURABILITY_POSTGRES_URL",
            "mysql://user:s3cret@db/app",
        ),
        ("PINBOARD_TOKEN", "s3cret with spaces"),
        ("PINBOARD_PASSPORT", "s3cret"),
        ("PINBOARD_PASSPORT", r#"{"providers": "s3cret"}"#),
    ] {
        let line = refused(&[(name, value)]);
        assert!(line.starts_with(name), "{line}");
        assert!(!line.contains("s3cret"), "{line}");
    }
    let config = read(&[("PINBOARD_TOKEN", "s3cret"), ("REDIS_URL", "memory:")]);
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
    let redis = ("REDIS_URL", "rediss://user:s3cret@redis:6380/2");
    let config = read(&[redis, PASSPORT]).expect("a config");
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

// P1.3
#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_not_a_missing_one() {
    use std::os::unix::ffi::OsStringExt as _;

    let world = World {
        domain: Domain::real(),
        fetcher: Arc::new(NoFetcher),
        open_files: None,
    };
    let broken = |name: &str| (name == "REDIS_URL").then(|| OsString::from_vec(vec![0xff]));
    let error = Config::from_lookup(broken, &world).map(|_| ());
    let line = error.expect_err("a refusal").to_string();
    assert!(line.starts_with("REDIS_URL is not UTF-8"), "{line}");
}

// P1.3
#[test]
fn hostname_aware_mode_comes_with_the_next_release() {
    for on in ["on", "1", "TRUE", "yes"] {
        let line = refused(&[("PINBOARD_HOSTNAME_AWARE", on)]);
        assert!(line.contains("comes with the next release"), "{line}");
    }
    for off in ["off", "0", "false", "No"] {
        assert!(read(&[("PINBOARD_HOSTNAME_AWARE", off)]).is_ok(), "{off}");
    }
}

// P1.4
#[test]
fn production_keeps_a_dev_node_from_starting() {
    for name in ["NODE_ENV", "ENVIRONMENT", "APP_ENV"] {
        for mode in ["production", "Prod"] {
            let line = refused(&[(name, mode)]);
            assert!(line.starts_with(name), "{line}");
            assert!(
                line.contains("PINBOARD_ALLOW_DEV_IN_PRODUCTION=1"),
                "{line}"
            );
            let allowed = ("PINBOARD_ALLOW_DEV_IN_PRODUCTION", "1");
            assert!(read(&[(name, mode), allowed]).is_ok());
            // A fleet is meant for it.
            assert!(read(&[(name, mode), REDIS, PASSPORT]).is_ok());
        }
        assert!(read(&[(name, "staging")]).is_ok());
    }
}

// P1.4
#[tokio::test]
async fn a_dev_node_without_a_passport_has_one_key_that_may_do_everything() {
    let given = read(&[("PINBOARD_TOKEN", "given")]).expect("a config");
    let key = given.dev_key.expect("a key");
    assert_eq!((key.token.expose(), key.fresh), ("given", false));

    let made = read(&[]).expect("a config");
    let key = made.dev_key.expect("a key");
    assert!(key.fresh && key.token.expose().len() >= 32);
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::try_from(format!("Bearer {}", key.token.expose()));
    headers.insert("authorization", bearer.expect("a header"));
    let principal = made.passport.authenticate(&headers).await;
    let principal = principal.expect("the key");
    assert!(principal.has(WORKER_SCOPE) && principal.has(OPERATOR_SCOPE));
    assert!(principal.grants.is_unrestricted());

    let other = read(&[]).expect("a config").dev_key.expect("a key");
    assert_ne!(key.token.expose(), other.token.expose());
}

// P1.4
#[test]
fn only_a_made_up_key_keeps_a_node_on_loopback() {
    let listen = |pairs: &[(&str, &str)]| read(pairs).expect("a config").listen.ip();
    assert!(listen(&[]).is_loopback());
    assert!(listen(&[("PINBOARD_TOKEN", "given")]).is_loopback());
    assert!(listen(&[("BIND", "0.0.0.0")]).is_unspecified());
    assert!(listen(&[PASSPORT]).is_unspecified());
    assert!(listen(&[REDIS, PASSPORT]).is_unspecified());
}

// P1.4
#[test]
fn outside_dev_mode_a_missing_passport_ends_the_start() {
    let line = refused(&[REDIS]);
    assert!(line.starts_with("PINBOARD_PASSPORT is not set"), "{line}");
    let line = refused(&[REDIS, ("PINBOARD_TOKEN", "t")]);
    assert!(line.starts_with("PINBOARD_PASSPORT is not set"), "{line}");
}

// P7.2
#[test]
fn a_passport_that_names_a_variable_which_is_not_set_ends_the_start() {
    let passport = r#"{"providers": [{"type": "staticToken", "id": "pinboard", "keys": [
        {"name": "workers", "token": [{"env": "TOKEN_A"}, {"env": "TOKEN_B"}], "scopes": ["pinboard:worker"]}]}]}"#;
    let pairs = [("PINBOARD_PASSPORT", passport), ("TOKEN_A", "a")];
    let line = refused(&pairs);
    assert!(line.starts_with("PINBOARD_PASSPORT is invalid: "), "{line}");
    assert!(line.contains("TOKEN_B"), "{line}");
    assert!(read(&[pairs[0], pairs[1], ("TOKEN_B", "b")]).is_ok());
}

// P1.3
#[test]
fn the_four_kinds_of_store_are_told_apart() {
    for url in [
        "redis://127.0.0.1",
        "redis://user:pass@redis.internal:6379/3",
        "rediss://redis.internal:6380",
        "redis+cluster://redis-0.internal:6379",
    ] {
        let config = read(&[("REDIS_URL", url), PASSPORT]).expect(url);
        assert!(matches!(config.store, StoreConfig::Redis(_)), "{url}");
    }
    for url in [
        "redis:",
        "redis://",
        "memory",
        "memory://x",
        "unix:///redis.sock",
        "redis://h:0",
    ] {
        let line = refused(&[("REDIS_URL", url), PASSPORT]);
        assert!(line.contains("`memory:`"), "{line}");
    }
}
