//! A private Redis.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::RedisOptions;
use super::program::{CLUSTER_OK, binaries, guarded};
use crate::server::{Guarded, complete, run_blocking};

/// A Redis of its own, on a free port of 127.0.0.1 and in a temporary folder.
///
/// It ends with this value, and also when the process ends in any other way.
///
/// ```no_run
/// # use pinned_testing::RedisServer;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let redis = RedisServer::start().await;
/// assert!(redis.url().starts_with("redis://127.0.0.1:"));
///
/// redis.cli(&["SET", "greeting", "hello"]).await;
/// redis.kill().await;
/// redis.restart().await;
/// // Nothing is kept, unless `RedisOptions` say so.
/// assert_eq!(redis.cli(&["EXISTS", "greeting"]).await, "0");
/// # }
/// ```
pub struct RedisServer {
    binaries: PathBuf,
    port: u16,
    server: Arc<Guarded>,
}

impl RedisServer {
    /// Starts one that keeps nothing on the disk.
    ///
    /// # Panics
    ///
    /// When Redis is not installed, which names the package, or does not start, which shows its log.
    pub async fn start() -> Self {
        Self::start_with(RedisOptions::default()).await
    }

    /// Starts one with these settings.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`].
    pub async fn start_with(options: RedisOptions) -> Self {
        run_blocking(move || {
            let binaries = binaries();
            let server = guarded(&binaries, options, false);
            let [port] = server.start(|[port]| format!("--port {port}"));
            Self {
                binaries,
                port,
                server: Arc::new(server),
            }
        })
        .await
    }

    /// Starts one that is to be a node of a cluster, and gives the port of its bus as well.
    pub(super) async fn start_node(options: RedisOptions) -> (Self, u16) {
        run_blocking(move || {
            let binaries = binaries();
            let server = guarded(&binaries, options, true);
            let [port, bus] =
                server.start(|[port, bus]| format!("--port {port} --cluster-port {bus}"));
            let node = Self {
                binaries,
                port,
                server: Arc::new(server),
            };
            (node, bus)
        })
        .await
    }

    /// The one of this test binary, started by whoever asks first. Tests run beside each other: leave it running, and
    /// use keys that are the test's own.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`].
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<RedisServer> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Its address: `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port on 127.0.0.1, the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id, while it runs. Another one after a restart.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.process()
    }

    /// Ends it with SIGKILL, also when it is paused. Does nothing to one that does not run.
    ///
    /// # Cancel safety
    ///
    /// It is ended even if the future is dropped.
    pub async fn kill(&self) {
        self.blocking(|server| server.kill()).await;
    }

    /// Starts it on the port and in the folder it had, after [killing](Self::kill) it if it runs. Returns once it serves.
    ///
    /// # Panics
    ///
    /// When it does not start, which shows its log.
    ///
    /// # Cancel safety
    ///
    /// It is restarted even if the future is dropped.
    pub async fn restart(&self) {
        self.blocking(|server| server.restart()).await;
    }

    /// Stops it with SIGSTOP: connections stay open, and nothing is answered until [`RedisServer::resume`].
    ///
    /// # Panics
    ///
    /// When it does not run.
    ///
    /// # Cancel safety
    ///
    /// It is stopped even if the future is dropped.
    pub async fn pause(&self) {
        self.blocking(|server| server.signal("STOP")).await;
    }

    /// Lets it go on, with SIGCONT.
    ///
    /// # Panics
    ///
    /// When it does not run.
    ///
    /// # Cancel safety
    ///
    /// It goes on even if the future is dropped.
    pub async fn resume(&self) {
        self.blocking(|server| server.signal("CONT")).await;
    }

    /// Removes every key, with `FLUSHALL`.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::cli`].
    pub async fn flush(&self) {
        self.cli(&["FLUSHALL"]).await;
    }

    /// Runs a command through `redis-cli` and gives what it prints, without the last line end. Waits while the server is
    /// paused.
    ///
    /// # Panics
    ///
    /// When the server does not run or answers with an error.
    ///
    /// # Cancel safety
    ///
    /// The command may be run even if the future is dropped.
    pub async fn cli(&self, arguments: &[&str]) -> String {
        let mut cli = Command::new(self.binaries.join("redis-cli"));
        // `-e` makes an error that the server answers a failure.
        cli.args(["-e", "-h", "127.0.0.1", "-p"])
            .arg(self.port.to_string())
            .args(arguments)
            .env_remove("REDISCLI_AUTH");
        let mut printed = run_blocking(move || complete(cli)).await;
        if printed.ends_with('\n') {
            printed.pop();
        }
        printed
    }

    /// Waits until it says, as a node of a cluster, that every slot is served.
    pub(super) async fn wait_until_cluster_ok(&self) {
        let port = self.port;
        self.blocking(move |server| {
            if let Err(failure) = server.wait_for_mark(CLUSTER_OK) {
                panic!("the Redis of port {port} waited for its cluster: {failure}");
            }
        })
        .await;
    }

    async fn blocking(&self, work: impl FnOnce(&Guarded) + Send + 'static) {
        let server = Arc::clone(&self.server);
        run_blocking(move || work(&server)).await;
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer")
            .field("port", &self.port)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}
