//! From a URL and the addresses behind it to a connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinned_domain::Domain;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use url::{Host, Url};

use super::tls::Trust;
use super::{Dial, ExchangeError, ExchangeErrorKind, Stream, TcpDial};

/// How long one address has to take a connection, TLS included (P5.11, P5.12).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How connections are made, and who is trusted. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    dial: Arc<dyn Dial>,
    trust: Trust,
}

impl Connector {
    /// One that dials with `dial` and trusts the system's roots.
    #[must_use]
    pub fn new(dial: impl Dial) -> Self {
        Self {
            dial: Arc::new(dial),
            trust: Trust::System,
        }
    }

    /// With a TLS configuration of the caller's own: other roots, a client certificate.
    #[must_use]
    pub fn with_tls(mut self, config: Arc<ClientConfig>) -> Self {
        self.trust = Trust::Config(config);
        self
    }

    async fn open(&self, address: SocketAddr, security: &Security) -> io::Result<Stream> {
        let stream = self.dial.dial(address).await?;
        match security {
            Security::Plain => Ok(stream),
            Security::Tls(name) => self.trust.handshake(name.clone(), stream).await,
        }
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::new(TcpDial)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Where connections go.
#[derive(Debug)]
pub(super) struct Origin {
    addresses: Vec<SocketAddr>,
    /// `None`: nothing that can be spoken to, neither `http` nor an `https` with a name that a certificate could have.
    security: Option<Security>,
    /// The address that took the last connection, asked first the next time.
    preferred: AtomicUsize,
}

#[derive(Debug)]
enum Security {
    Plain,
    Tls(ServerName<'static>),
}

impl Origin {
    /// Whatever host `url` names, only `addresses` are dialled.
    pub(super) fn new(url: &Url, addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            security: security(url),
            preferred: AtomicUsize::new(0),
        }
    }

    /// Connects to one of the addresses, each in turn.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing has been sent but a TLS handshake.
    pub(super) async fn connect(
        &self,
        connector: &Connector,
        domain: &Domain,
    ) -> Result<Stream, ExchangeError> {
        let Some(security) = &self.security else {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a URL to connect to");
            return Err(failed(ExchangeErrorKind::Unreachable, source));
        };
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failure = failed(
            ExchangeErrorKind::Unreachable,
            io::Error::new(io::ErrorKind::AddrNotAvailable, "no address to connect to"),
        );
        for turn in 0..self.addresses.len() {
            let index = first.wrapping_add(turn) % self.addresses.len();
            let opening = connector.open(self.addresses[index], security);
            failure = match domain.timeout(CONNECT_TIMEOUT, opening).await {
                Ok(Ok(stream)) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(stream);
                }
                Ok(Err(source)) if source.kind() == io::ErrorKind::TimedOut => {
                    failed(ExchangeErrorKind::ConnectTimeout, source)
                }
                Ok(Err(source)) => failed(ExchangeErrorKind::Unreachable, source),
                Err(elapsed) => failed(
                    ExchangeErrorKind::ConnectTimeout,
                    io::Error::new(io::ErrorKind::TimedOut, elapsed),
                ),
            };
        }
        Err(failure)
    }
}

fn security(url: &Url) -> Option<Security> {
    match (url.scheme(), url.host()?) {
        ("http", _) => Some(Security::Plain),
        ("https", Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .ok()
            .map(Security::Tls),
        ("https", Host::Ipv4(ip)) => Some(Security::Tls(ServerName::IpAddress(ip.into()))),
        ("https", Host::Ipv6(ip)) => Some(Security::Tls(ServerName::IpAddress(ip.into()))),
        _ => None,
    }
}

/// A failure from before a single byte of a request was written.
fn failed(kind: ExchangeErrorKind, source: io::Error) -> ExchangeError {
    ExchangeError {
        kind,
        may_have_reached: false,
        source,
    }
}
