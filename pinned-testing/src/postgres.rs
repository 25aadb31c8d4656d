//! A private PostgreSQL for tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fmt, fs};

use tokio::sync::OnceCell;

use crate::server::{Folder, Guarded, Served, complete, folder_with, run_blocking};

/// The superuser of the server, who needs no password.
const USER: &str = "postgres";
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];

/// A PostgreSQL of its own, on a free port of 127.0.0.1 and in a temporary folder, durable as in production.
///
/// It ends with this value, and also when the process ends in any other way.
///
/// ```no_run
/// # use pinned_testing::PostgresServer;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let dsn = PostgresServer::shared().await.create_database().await;
/// assert!(dsn.starts_with("postgres://postgres@127.0.0.1:"));
/// # }
/// ```
pub struct PostgresServer {
    binaries: PathBuf,
    port: u16,
    server: Arc<Guarded>,
    databases: AtomicU64,
}

impl PostgresServer {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// When PostgreSQL is not installed, which names the package, or does not start, which shows its log.
    pub async fn start() -> Self {
        run_blocking(start).await
    }

    /// The one of this test binary, started by whoever asks first. Tests run beside each other: leave it running.
    ///
    /// # Panics
    ///
    /// As [`PostgresServer::start`].
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<PostgresServer> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Makes an empty database and gives its DSN.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.create_database_like(&name, "TEMPLATE template1").await
    }

    /// Makes a database of this name with these options of `CREATE DATABASE`, and gives its DSN.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn create_database_like(&self, name: &str, options: &str) -> String {
        let mut psql = Command::new(self.binary("psql"));
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--host=127.0.0.1",
            "--dbname=postgres",
        ])
        .arg(format!("--port={}", self.port))
        .arg(format!("--username={USER}"))
        .arg(format!("--command=CREATE DATABASE {name} {options}"));
        run_blocking(move || complete(psql)).await;
        self.dsn(name)
    }

    /// The DSN of a database.
    #[must_use]
    pub fn dsn(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the server at once, as a crash would: sessions are cut, and what was committed is found again in the log at
    /// the next start. Does nothing to one that does not run.
    ///
    /// This is PostgreSQL's immediate shutdown. SIGKILL would leave the processes of its sessions behind.
    ///
    /// # Panics
    ///
    /// When it does not end.
    ///
    /// # Cancel safety
    ///
    /// It is ended even if the future is dropped.
    pub async fn kill(&self) {
        let server = Arc::clone(&self.server);
        run_blocking(move || server.kill()).await;
    }

    /// Starts the server on the port and with the data it had, after [killing](Self::kill) it if it runs.
    ///
    /// # Panics
    ///
    /// When it does not start, which shows its log.
    ///
    /// # Cancel safety
    ///
    /// It is restarted even if the future is dropped.
    pub async fn restart(&self) {
        let server = Arc::clone(&self.server);
        run_blocking(move || server.restart()).await;
    }

    /// The path of a program that comes with this PostgreSQL, such as `pgbench`.
    #[must_use]
    pub fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer")
            .field("port", &self.port)
            .field("pid", &self.server.process())
            .finish_non_exhaustive()
    }
}

// --- Starting ---------------------------------------------------------------------------------------------------------

fn start() -> PostgresServer {
    let binaries = binaries();
    let folder = Folder::make("postgres");
    let user = User::of(folder.path());
    let data = folder.path().join("data");
    let settings = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=200",
    ];
    let mut command: Vec<OsString> = vec![
        binaries.join("postgres").into(),
        "-D".into(),
        data.clone().into(),
    ];
    command.extend(
        settings
            .into_iter()
            .flat_map(|set| ["-c".into(), set.into()]),
    );
    let server = Guarded::new(
        folder,
        Served {
            name: "PostgreSQL",
            shell: user.command(Path::new("/bin/sh")),
            command,
            ending: "QUIT",
            marks: &["database system is ready to accept connections"],
        },
    );
    let mut initdb = user.command(&binaries.join("initdb"));
    initdb
        .args([
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
        ])
        .arg(format!("--username={USER}"))
        .arg("--pgdata")
        .arg(&data);
    complete(initdb);
    let [port] = server.start(|[port]| format!("-p {port}"));
    PostgresServer {
        binaries,
        port,
        server: Arc::new(server),
        databases: AtomicU64::new(0),
    }
}

/// Where the programs are: on `PATH`, or where Debian keeps those of each version.
fn binaries() -> PathBuf {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    // The newest first.
    versions.sort_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
    });
    folder_with(&PROGRAMS, versions.into_iter().map(|version| version.join("bin"))).expect(
        "PostgreSQL is neither on PATH nor under /usr/lib/postgresql; install the package `postgresql` (Debian)",
    )
}

/// Whom the server runs as: PostgreSQL refuses to run as root.
struct User(Option<(u32, u32)>);

impl User {
    /// This user; or, for root, the one that the package has made, who is given `folder`.
    #[cfg(unix)]
    fn of(folder: &Path) -> Self {
        use std::os::unix::fs::{MetadataExt, chown};

        let owner = fs::metadata(folder).expect("the folder was just made");
        if owner.uid() != 0 {
            return Self(None);
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, uid, gid) = (
                fields.next()?,
                fields.next()?,
                fields.next()?,
                fields.next()?,
            );
            (name == USER).then_some((uid.parse().ok()?, gid.parse().ok()?))
        });
        let (uid, gid) = ids.expect(
            "PostgreSQL does not run as root, and there is no user `postgres`; install the package `postgresql` (Debian)",
        );
        chown(folder, Some(uid), Some(gid)).expect("root may give a folder away");
        Self(Some((uid, gid)))
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Self {
        Self(None)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // The folder of the test may be closed to the other user.
        command.current_dir(env::temp_dir()).env("LC_ALL", "C");
        #[cfg(unix)]
        if let Some((uid, gid)) = self.0 {
            use std::os::unix::process::CommandExt;
            command.uid(uid).gid(gid);
        }
        command
    }
}
