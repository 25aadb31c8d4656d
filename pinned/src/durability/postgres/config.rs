//! What a store is built from, and what is refused (D12).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config};

use crate::domain::Domain;
use crate::error::BoxError;

/// Runs at the start of every transaction, after its timeouts are set and before any statement of the store (D9.2):
/// `SET LOCAL ROLE ...`, a `search_path`, whatever the database demands.
///
/// It is inside the transaction and must neither commit nor roll back. When it fails, the transaction is rolled back and
/// the operation fails with its error (D9.7). It runs again whenever the operation is tried again. The server ends a
/// transaction in which it is asked nothing for 5 s: a hook that waits for something else for longer has to set another
/// `idle_in_transaction_session_timeout` first.
pub type TransactionHook =
    Arc<dyn for<'a> Fn(&'a Client) -> BoxFuture<'a, Result<(), BoxError>> + Send + Sync + 'static>;

/// The settings of a [`PostgresStore`](super::PostgresStore), checked when it is built.
///
/// ```
/// use std::sync::Arc;
///
/// use pinned::durability::postgres::{PostgresOptions, PostgresStore};
///
/// # fn main() -> Result<(), pinned::durability::postgres::PostgresConfigError> {
/// let options = PostgresOptions::new()
///     .pool_size(16)
///     .hook(Arc::new(|transaction| {
///         Box::pin(async move { Ok(transaction.batch_execute("SET LOCAL search_path = pinned").await?) })
///     }));
/// let store = PostgresStore::from_dsn("postgres://worker@db.internal/app", options)?;
/// # let _ = store;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until a store is built from them"]
pub struct PostgresOptions {
    pub(super) pool_size: usize,
    pub(super) stamp: Stamp,
    pub(super) hook: Option<TransactionHook>,
    pub(super) domain: Domain,
}

/// Whose rows these are: written into each of them (D8.6).
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub(super) env: Arc<str>,
    pub(super) hostname: Arc<str>,
}

impl PostgresOptions {
    /// The defaults: 8 connections, the stamp of a single world, no hook, the real domain.
    pub fn new() -> Self {
        Self {
            // The work of a worker is bounded by commits to one disk; more connections only queue there.
            pool_size: 8,
            stamp: Stamp {
                env: "*".into(),
                hostname: "*".into(),
            },
            hook: None,
            domain: Domain::real(),
        }
    }

    /// How many connections there are at most, at least 1; each is dialled when it is first needed.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// The environment that written rows are stamped with; `*` unless set.
    pub fn env(mut self, env: impl Into<Arc<str>>) -> Self {
        self.stamp.env = env.into();
        self
    }

    /// The hostname that written rows are stamped with; `*` unless set.
    pub fn hostname(mut self, hostname: impl Into<Arc<str>>) -> Self {
        self.stamp.hostname = hostname.into();
        self
    }

    /// Runs `hook` at the start of every transaction.
    pub fn hook(mut self, hook: TransactionHook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Where deadlines and tasks come from.
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = domain;
        self
    }

    pub(super) fn check(&self) -> Result<(), PostgresConfigError> {
        if self.pool_size == 0 {
            return Err(PostgresConfigError::NoConnections);
        }
        for (option, value) in [("env", &self.stamp.env), ("hostname", &self.stamp.hostname)] {
            if value.contains('\0') {
                return Err(PostgresConfigError::Nul { option });
            }
        }
        Ok(())
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("pool_size", &self.pool_size)
            .field("stamp", &self.stamp)
            .field("hook", &self.hook.is_some())
            .field("domain", &self.domain)
            .finish()
    }
}

/// Why no [`PostgresStore`](super::PostgresStore) was built. None of these shows the DSN, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresConfigError {
    /// The text is no DSN.
    #[error(
        "not a DSN of PostgreSQL: expected `postgres://user:password@host:port/database`, or `key=value` pairs such as \
         `host=db.internal dbname=app` (it is not shown here, because it may hold a password)"
    )]
    MalformedDsn,
    /// The DSN names no server.
    #[error(
        "the DSN names no host: `postgres://user@host/database`, or `host=` and a folder for a Unix socket"
    )]
    NoHost,
    /// The DSN demands an encrypted connection.
    #[error(
        "the DSN demands TLS (`sslmode`), which this store does not speak; use `sslmode=disable` on a private network, a \
         Unix socket, or a TLS tunnel beside the worker"
    )]
    TlsRequired,
    /// A pool without connections.
    #[error("`pool_size` must be at least 1")]
    NoConnections,
    /// A stamp that PostgreSQL cannot store.
    #[error("`{option}` must not contain a NUL character")]
    Nul {
        /// Which of the stamps.
        option: &'static str,
    },
}

/// Reads a DSN; what it leaves out is left to the server.
pub(super) fn parse(dsn: &str) -> Result<Config, PostgresConfigError> {
    // The parser does not know these two modes, and its error would not say so.
    if ["sslmode=verify-ca", "sslmode=verify-full"]
        .iter()
        .any(|mode| dsn.contains(mode))
    {
        return Err(PostgresConfigError::TlsRequired);
    }
    let mut config: Config = dsn.parse().map_err(|_| PostgresConfigError::MalformedDsn)?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(PostgresConfigError::TlsRequired);
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(PostgresConfigError::NoHost);
    }
    if config.get_application_name().is_none() {
        config.application_name(process_name());
    }
    Ok(config)
}

/// How this process shows in `pg_stat_activity`: whom to look for when it holds something.
pub(super) fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let pid = std::process::id();
    // PostgreSQL keeps 63 bytes, and the pid must be among them.
    let host: String = host
        .trim()
        .chars()
        .filter(char::is_ascii_graphic)
        .take(36)
        .collect();
    match host.as_str() {
        "" => format!("pinned, pid {pid}"),
        host => format!("pinned on {host}, pid {pid}"),
    }
}

/// Where a DSN leads, without its secrets.
pub(super) fn place(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    });
    let mut hosts: Vec<String> = hosts.collect();
    if hosts.is_empty() {
        hosts = config
            .get_hostaddrs()
            .iter()
            .map(ToString::to_string)
            .collect();
    }
    let ports = config.get_ports();
    for (index, host) in hosts.iter_mut().enumerate() {
        // One port counts for every host.
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        *host = format!("{host}:{port}");
    }
    let database = config.get_dbname().or(config.get_user()).unwrap_or("");
    format!("PostgreSQL at {}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    // D12.1
    #[test]
    fn what_a_store_cannot_be_built_from_is_refused_without_showing_the_password() {
        use PostgresConfigError as E;
        for (dsn, expected) in [
            ("", E::NoHost),
            ("postgres://user:s3cret@/db", E::NoHost),
            ("host=h password=s3cret colour=s3cret", E::MalformedDsn),
            ("mysql://user:s3cret@h/db", E::MalformedDsn),
            ("postgres://u:s3cret@h/db?sslmode=require", E::TlsRequired),
            (
                "postgres://u:s3cret@h/db?sslmode=verify-full",
                E::TlsRequired,
            ),
        ] {
            let error = parse(dsn).expect_err(dsn);
            assert_eq!(error, expected, "{dsn}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
        assert_eq!(
            PostgresOptions::new().pool_size(0).check(),
            Err(E::NoConnections)
        );
        assert_eq!(
            PostgresOptions::new().env("a\0").check(),
            Err(E::Nul { option: "env" })
        );
    }

    #[test]
    fn a_place_shows_host_port_and_database_alone() {
        for (dsn, expected) in [
            (
                "postgres://u:s3cret@db:7000/app",
                "PostgreSQL at db:7000/app",
            ),
            (
                "host=a,b user=u password=s3cret",
                "PostgreSQL at a:5432,b:5432/u",
            ),
            (
                "hostaddr=127.0.0.1 dbname=app",
                "PostgreSQL at 127.0.0.1:5432/app",
            ),
        ] {
            assert_eq!(
                parse(dsn).map(|config| place(&config)),
                Ok(expected.to_owned())
            );
        }
    }

    #[test]
    fn a_process_names_itself_with_its_pid_in_what_postgresql_keeps() {
        let name = process_name();
        assert!(
            name.ends_with(&std::process::id().to_string()) && name.len() <= 63,
            "{name}"
        );
    }
}
