//! What a node says to people when it starts.

use std::fmt;
use std::net::SocketAddr;

use pinned_wire::registry::Secret;

use crate::config::{Config, PostgresTarget};

/// What a node says to people when it starts: what it serves, where, on which store, and what to do next.
///
/// Its `Display` holds the token of a dev node that was only just made, which is the one time that it is shown (P1.4).
#[derive(Clone, Debug)]
pub struct StartBlock {
    /// Where it listens.
    pub address: SocketAddr,
    /// The registry store, without secrets.
    pub store: String,
    /// Whether it is a dev node.
    pub dev: bool,
    /// The token of a dev node's key, when nobody knows it yet.
    pub fresh_token: Option<Secret>,
    /// The durable store that is scanned, without secrets.
    pub scanner: Option<String>,
    /// How long a worker lives after its last heartbeat, in milliseconds.
    pub lease_ttl_ms: u128,
    /// How many client connections are held at most.
    pub max_connections: usize,
}

impl StartBlock {
    /// What a node says that was told `config`, listens on `address`, and describes its store so.
    #[must_use]
    pub fn new(config: &Config, address: SocketAddr, store: String) -> Self {
        let fresh = config.dev_key.as_ref().filter(|key| key.fresh);
        Self {
            address,
            store,
            dev: config.is_dev(),
            fresh_token: fresh.map(|key| key.token.clone()),
            scanner: config.scanner.as_ref().map(PostgresTarget::describe),
            lease_ttl_ms: config.settings.lease_ttl.as_millis(),
            max_connections: config.settings.max_connections,
        }
    }
}

impl fmt::Display for StartBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = url(self.address);
        let interfaces = if self.address.ip().is_unspecified() {
            " (all interfaces)"
        } else {
            ""
        };
        let version = env!("CARGO_PKG_VERSION");
        writeln!(f, "pinboard {version} serving on {url}{interfaces}")?;
        if self.dev {
            writeln!(
                f,
                "  mode     DEV MODE: placements are forgotten when this process ends, and no other node shares them; set REDIS_URL for a fleet"
            )?;
        } else {
            writeln!(f, "  mode     a node of the fleet on its store")?;
        }
        writeln!(f, "  store    {}", self.store)?;
        match &self.scanner {
            Some(scanner) => writeln!(f, "  scanner  {scanner}")?,
            None => writeln!(
                f,
                "  scanner  off: durable work waits for a request; PINBOARD_DURABILITY_POSTGRES_URL turns it on"
            )?,
        }
        writeln!(
            f,
            "  limits   a worker lives {} ms after its last heartbeat; at most {} connections",
            self.lease_ttl_ms, self.max_connections
        )?;
        if let Some(token) = &self.fresh_token {
            let token = token.expose();
            writeln!(
                f,
                "  token    {token}\n\
                 \x20          made for this start and shown once; PINBOARD_TOKEN sets one that stays\n\
                 \x20 worker   PINBOARD_URL={url} PINBOARD_TOKEN={token} ADVERTISE_URL=http://127.0.0.1:8000\n\
                 \x20 operator PINBOARD_URL={url} PINBOARD_OPERATOR_TOKEN={token} pinboard workers"
            )?;
        }
        Ok(())
    }
}

/// An address as a client takes it: one for all interfaces is reached at `localhost`.
fn url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> StartBlock {
        StartBlock {
            address: ([127, 0, 0, 1], 8080).into(),
            store: "memory".to_owned(),
            dev: true,
            fresh_token: Some(Secret::new("t0ken")),
            scanner: None,
            lease_ttl_ms: 15_000,
            max_connections: 384,
        }
    }

    // P1.4
    #[test]
    fn a_dev_node_says_so_and_shows_the_token_that_it_made() {
        let text = block().to_string();
        for words in [
            "http://127.0.0.1:8080",
            "DEV MODE",
            "  token    t0ken\n",
            "pinboard workers",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(!format!("{:?}", block()).contains("t0ken"));
    }

    #[test]
    fn a_node_of_a_fleet_shows_no_token() {
        let block = StartBlock {
            address: ([0, 0, 0, 0], 80).into(),
            dev: false,
            fresh_token: None,
            ..block()
        };
        let text = block.to_string();
        assert!(
            text.contains("http://localhost:80 (all interfaces)"),
            "{text}"
        );
        assert!(
            !text.contains("DEV MODE") && !text.contains("token"),
            "{text}"
        );
    }
}
