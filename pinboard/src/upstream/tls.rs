//! TLS over a connection, for workers that advertise `https`.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::Stream;

/// What all backends trust: the system's roots, read once.
static SYSTEM: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// Who is trusted.
#[derive(Clone, Debug, Default)]
pub(super) enum Trust {
    /// The roots of the operating system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    #[default]
    System,
    /// What this says.
    Config(Arc<ClientConfig>),
}

impl Trust {
    /// Speaks TLS with `name` over `stream`.
    pub(super) async fn handshake(
        &self,
        name: ServerName<'static>,
        stream: Stream,
    ) -> io::Result<Stream> {
        let config = match self {
            Self::System => Arc::clone(SYSTEM.get_or_try_init(system_config).await?),
            Self::Config(config) => Arc::clone(config),
        };
        let connector = TlsConnector::from(config);
        Ok(match stream {
            Stream::Tcp(tcp) => Stream::Tls(Box::new(connector.connect(name, tcp).await?)),
            Stream::Tls(tls) => Stream::Other(Box::new(connector.connect(name, tls).await?)),
            Stream::Other(other) => Stream::Other(Box::new(connector.connect(name, other).await?)),
        })
    }
}

async fn system_config() -> io::Result<Arc<ClientConfig>> {
    // It reads and parses files, some hundred KiB of them.
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "this system has no root certificates that could be read (ca-certificates, or SSL_CERT_FILE)",
        ));
    }
    let mut config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
