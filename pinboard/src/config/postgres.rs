//! Where the durable work is.

use std::fmt;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The PostgreSQL that the scanner reads (`PINBOARD_DURABILITY_POSTGRES_URL`). Its `Debug` shows no secrets.
///
/// ```
/// use pinboard::config::PostgresTarget;
///
/// let target = PostgresTarget::parse("postgres://reader:s3cret@db.internal/app?sslmode=require")?;
/// assert_eq!(target.describe(), "PostgreSQL at db.internal:5432/app (TLS)");
/// # Ok::<(), pinboard::config::MalformedDsn>(())
/// ```
#[derive(Clone)]
pub struct PostgresTarget {
    pub(crate) config: Config,
    pub(crate) tls: bool,
}

/// It is no DSN of PostgreSQL. The text is not shown, because it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a DSN of PostgreSQL: postgres://USER:PASSWORD@HOST:PORT/DATABASE, or pairs such as `host=db.internal dbname=app`"
)]
pub struct MalformedDsn;

impl PostgresTarget {
    /// Reads a DSN. The connection is encrypted, and the server's certificate checked against the system's roots and its name, where
    /// the DSN has `sslmode=require`, `verify-ca` or `verify-full`; it is plain otherwise.
    ///
    /// # Errors
    ///
    /// [`MalformedDsn`], also when it names no host.
    pub fn parse(dsn: &str) -> Result<Self, MalformedDsn> {
        // The parser does not know these two modes; what they ask for is what is done anyway.
        let dsn = dsn
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = dsn.parse().map_err(|_| MalformedDsn)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(MalformedDsn);
        }
        let tls = config.get_ssl_mode() == SslMode::Require;
        if !tls {
            // `prefer` would take any certificate or none, which protects from nobody.
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_application_name().is_none() {
            config.application_name(format!("pinboard scanner, pid {}", std::process::id()));
        }
        Ok(Self { config, tls })
    }

    /// Host, port and database, and no secret.
    #[must_use]
    pub fn describe(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        });
        let mut hosts: Vec<String> = hosts.collect();
        if hosts.is_empty() {
            let addresses = self.config.get_hostaddrs().iter();
            hosts = addresses.map(ToString::to_string).collect();
        }
        let ports = self.config.get_ports();
        for (index, host) in hosts.iter_mut().enumerate() {
            // One port counts for every host.
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            *host = format!("{host}:{port}");
        }
        let database = self.config.get_dbname().or(self.config.get_user());
        let tls = if self.tls { " (TLS)" } else { "" };
        format!(
            "PostgreSQL at {}/{}{tls}",
            hosts.join(","),
            database.unwrap_or("")
        )
    }
}

impl fmt::Debug for PostgresTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresTarget")
            .field(&self.describe())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dsn_is_refused_and_not_shown() {
        for dsn in [
            "",
            "postgres://user:s3cret@/db",
            "host=h password=s3cret colour=s3cret",
            "mysql://user:s3cret@h/db",
        ] {
            let error = PostgresTarget::parse(dsn).expect_err(dsn);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_dsn_is_described_without_its_password() {
        let dsn = "postgres://reader:s3cret@a:1,b:2/app?sslmode=verify-full";
        let target = PostgresTarget::parse(dsn).expect("a DSN");
        let text = format!("{target:?}");
        assert!(text.contains("PostgreSQL at a:1,b:2/app (TLS)"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
