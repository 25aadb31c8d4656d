//! One connection to one server.

use std::sync::Arc;

use pinned_domain::{Domain, Event, TaskHandle};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Pipeline, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError,
    Value,
};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::Failure;
use super::invalidations::{Invalidations, Pushed};
use super::scripts;
use super::url::{Address, RedisUrl};
use crate::store::StoreError;

/// How many commands wait to be written before callers wait too.
const QUEUE: usize = 1_024;

/// How servers are connected to.
pub(super) struct Dialer {
    login: RedisConnectionInfo,
    tls: Option<TlsConnector>,
    cluster: bool,
    pub(super) domain: Domain,
}

/// A connection that is ready: logged in, its server fit, the scripts loaded, the rows that it reads remembered.
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// The process that it leads to.
    pub(super) run_id: String,
    /// Set once it is of no more use.
    pub(super) lost: Event,
    driver: TaskHandle<()>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

// ===== impl Dialer =====

impl Dialer {
    /// # Errors
    ///
    /// [`StoreError::Unusable`] when TLS is asked for and the system trusts nobody.
    pub(super) fn new(url: &RedisUrl, domain: Domain) -> Result<Self, StoreError> {
        let mut login = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_db(i64::from(url.database))
            .set_skip_set_lib_name();
        if let Some(username) = &url.username {
            login = login.set_username(username);
        }
        if let Some(password) = &url.password {
            login = login.set_password(password);
        }
        Ok(Self {
            login,
            tls: if url.tls { Some(tls()?) } else { None },
            cluster: url.cluster,
            domain,
        })
    }

    /// Connects, and makes the connection ready. What the server pushes goes to `invalidations`; `flushed` is called when it
    /// has lost everything.
    ///
    /// # Cancel safety
    ///
    /// The connection is closed.
    pub(super) async fn dial(
        &self,
        address: &Address,
        invalidations: &Arc<Invalidations>,
        flushed: impl Fn() + Send + Sync + 'static,
    ) -> Result<Link, Failure> {
        let lost = Event::new();
        let pushes = {
            let (invalidations, lost) = (Arc::clone(invalidations), lost.clone());
            move |push: PushInfo| -> Result<(), redis::aio::SendError> {
                match invalidations.push(push) {
                    Pushed::Flushed => flushed(),
                    Pushed::Disconnected => lost.set(),
                    Pushed::Rows | Pushed::Other => {}
                }
                Ok(())
            }
        };
        let config = config().set_push_sender(pushes);
        let (connection, driver) = self.connect(address, config, lost.clone()).await?;
        let mut link = Link {
            connection,
            run_id: String::new(),
            lost,
            driver,
        };
        link.run_id = self.introduce(address, &link).await?;
        Ok(link)
    }

    /// Asks a server something over a connection of its own, whatever kind of server it is.
    ///
    /// # Cancel safety
    ///
    /// The connection is closed.
    pub(super) async fn ask(
        &self,
        address: &Address,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, Failure> {
        let lost = Event::new();
        let (connection, driver) = self.connect(address, config(), lost.clone()).await?;
        let link = Link {
            connection,
            run_id: String::new(),
            lost,
            driver,
        };
        let answers = link.send(pipeline).await;
        answers.map_err(|error| Failure::of_connection(address, &error))
    }

    async fn connect(
        &self,
        address: &Address,
        config: AsyncConnectionConfig,
        lost: Event,
    ) -> Result<(MultiplexedConnection, TaskHandle<()>), Failure> {
        let stream = self.stream(address).await?;
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&self.login, stream, config)
                .await
                .map_err(|error| Failure::of_login(address, &error))?;
        let driver = self.domain.spawn(async move {
            driver.await;
            lost.set();
        });
        Ok((connection, driver))
    }

    async fn stream(&self, address: &Address) -> Result<Box<dyn Stream>, Failure> {
        let away = |error: std::io::Error| Failure::away(address, error.to_string());
        let host: &str = &address.host;
        let stream = TcpStream::connect((host, address.port))
            .await
            .map_err(away)?;
        stream.set_nodelay(true).map_err(away)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Failure::unfit(address, "no certificate can be for such a host"))?;
        let stream = tls.connect(name, stream).await.map_err(away)?;
        Ok(Box::new(stream))
    }

    /// Makes a connection ready; the run id of its server.
    async fn introduce(&self, address: &Address, link: &Link) -> Result<String, Failure> {
        let mut hello = redis::pipe();
        hello.cmd("CLIENT").arg("SETNAME").arg("pinboard");
        // Opting in keeps apart the rows, which this node remembers, from what else the scripts read.
        hello.cmd("CLIENT").arg("TRACKING").arg("ON").arg("OPTIN");
        let infos = hello.len();
        for section in ["server", "memory", "replication"] {
            hello.cmd("INFO").arg(section);
        }
        let answers = link
            .send(&hello)
            .await
            .map_err(|error| Failure::of_connection(address, &error))?;
        // What it is comes first: a server that does not fit refuses other things for that.
        let about = answers.get(infos..).unwrap_or_default();
        refused(address, about)?;
        let run_id = self.fit(address, &info(about))?;
        refused(address, &answers)?;

        let mut load = redis::pipe();
        for script in scripts::all() {
            load.cmd("SCRIPT").arg("LOAD").arg(&script.source);
        }
        let answers = link
            .send(&load)
            .await
            .map_err(|error| Failure::of_connection(address, &error))?;
        refused(address, &answers)?;
        Ok(run_id)
    }

    /// Whether a server can be worked with, by what it says of itself; its run id.
    fn fit(&self, address: &Address, info: &str) -> Result<String, Failure> {
        let field = |name: &str| {
            info.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key == name).then_some(value)
            })
        };
        let unfit = |what: String| Err(Failure::unfit(address, what));
        let Some(version) = field("redis_version") else {
            return unfit("it does not say its version (INFO server)".to_owned());
        };
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        if major.is_none_or(|major: u32| major < 7) {
            return unfit(format!(
                "it is version {version}, and 7.0 or later is needed"
            ));
        }
        if self.cluster != (field("redis_mode") == Some("cluster")) {
            return unfit(if self.cluster {
                "it is not part of a cluster: use redis:// or rediss://".to_owned()
            } else {
                "it is part of a cluster: use redis+cluster:// or rediss+cluster://".to_owned()
            });
        }
        // A server that throws away what it was given places an id twice.
        let policy = field("maxmemory_policy").unwrap_or("noeviction");
        if policy != "noeviction" && field("maxmemory") != Some("0") {
            return unfit(format!(
                "its maxmemory-policy is {policy}, and noeviction is needed"
            ));
        }
        match field("run_id") {
            Some(run_id)
                if !run_id.is_empty() && run_id.bytes().all(|b| b.is_ascii_alphanumeric()) =>
            {
                match field("role") {
                    Some("master") | None => Ok(run_id.to_owned()),
                    Some(_) => Err(Failure::away(address, "it is a replica now")),
                }
            }
            _ => unfit("it does not say its run_id (INFO server)".to_owned()),
        }
    }
}

fn config() -> AsyncConnectionConfig {
    // The limits of time are the domain's.
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE)
}

/// TLS as the system trusts it.
fn tls() -> Result<TlsConnector, StoreError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(StoreError::Unusable(
            "rediss:// needs root certificates, and this system has none (SSL_CERT_FILE names a file of them)"
                .to_owned(),
        ));
    }
    // The provider is named, because the process may have been built with several.
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unusable(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The text of several sections.
fn info(answers: &[Value]) -> String {
    let sections = answers.iter().filter_map(|answer| match answer {
        Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::BulkString(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    });
    sections.collect::<Vec<_>>().join("\n")
}

/// The first error among answers.
fn refused(address: &Address, answers: &[Value]) -> Result<(), Failure> {
    answers.iter().try_for_each(|answer| match answer {
        Value::ServerError(error) => Err(Failure::of_answer(address, error)),
        _ => Ok(()),
    })
}

// ===== impl Link =====

impl Link {
    /// Sends commands one after the other; what came of each. There is no limit of time.
    ///
    /// # Cancel safety
    ///
    /// What has been sent happens.
    pub(super) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.connection.clone();
        connection
            .send_packed_commands(pipeline, 0, pipeline.len())
            .await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
