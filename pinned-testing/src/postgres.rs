//! A private PostgreSQL for tests.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, thread};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// The superuser of the server, who needs no password.
const USER: &str = "postgres";
/// What is shown of the server's log when it does not start.
const LOG_LINES: usize = 40;
/// Somebody else may take the free port first.
const PORTS_TRIED: usize = 5;

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
    /// A shell that ends the server and removes its folder once its standard input closes, as it does with this process.
    guardian: Child,
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

    /// The one of this test binary, started by whoever asks first.
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
            .finish_non_exhaustive()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        // It has been told, and there is nothing to do about a failure.
        let _ = self.guardian.wait();
    }
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

// --- Starting ---------------------------------------------------------------------------------------------------------

fn start() -> PostgresServer {
    let binaries = binaries();
    let folder = Folder::make();
    let user = User::of(&folder.0);
    let data = folder.0.join("data");
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
    for _ in 0..PORTS_TRIED {
        let port = free_port();
        let mut guardian = guard(&user, &binaries, &data, &folder.0, port);
        match wait_until_ready(&mut guardian) {
            Ok(()) => {
                // From here on the folder is the guardian's.
                std::mem::forget(folder);
                return PostgresServer {
                    binaries,
                    port,
                    guardian,
                    databases: AtomicU64::new(0),
                };
            }
            Err(log) if log.contains("could not bind") => {
                let _ = guardian.wait();
            }
            Err(log) => panic!("PostgreSQL did not start:\n{log}"),
        }
    }
    panic!("PostgreSQL found each of {PORTS_TRIED} free ports taken");
}

/// Where the programs are: on `PATH`, or where Debian keeps those of each version.
fn binaries() -> PathBuf {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&on_path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
        // The newest first.
        versions.sort_by_key(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
        });
        folders.extend(versions.into_iter().map(|version| version.join("bin")));
    }
    folders
        .into_iter()
        .find(|folder| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file()))
        .expect(
            "PostgreSQL is neither on PATH nor under /usr/lib/postgresql; install the package `postgresql` (Debian)",
        )
}

/// Removed again, unless a guardian has taken it over.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("pinned-postgres-{}-{number}", process::id());
            let path = env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // Left over by a process of the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make {}: {error}", path.display()),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|bound| bound.local_addr());
    listener.expect("a free port on 127.0.0.1").port()
}

/// Starts the server under a shell that outlives this process for as long as it takes to clean up.
fn guard(user: &User, binaries: &Path, data: &Path, folder: &Path, port: u16) -> Child {
    // `read` returns once the other end of the pipe is gone, whatever became of the process that had it. If the server
    // ends first, its wait is what ends the shell.
    const GUARD: &str = r#"
        "$1" -D "$2" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
            -c max_connections=200 </dev/null &
        server=$!
        (read -r _; kill -QUIT "$server") <&3 2>/dev/null &
        exec 3<&-
        wait "$server"
        status=$?
        [ "$status" = 1 ] || rm -rf "$4"
        exit "$status"
    "#;
    user.command(Path::new("/bin/sh"))
        .args(["-c", &format!("exec 3<&0\n{GUARD}"), "guardian"])
        .arg(binaries.join("postgres"))
        .arg(data)
        .arg(port.to_string())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell to start PostgreSQL under")
}

/// Reads the server's log until it serves; the log, if it ends before. What comes later is read and forgotten.
fn wait_until_ready(guardian: &mut Child) -> Result<(), String> {
    let stderr = guardian.stderr.take().expect("piped");
    let (ready, outcome) = std::sync::mpsc::channel();
    let log = Arc::new(Mutex::new(VecDeque::new()));
    let tail = Arc::clone(&log);
    thread::spawn(move || follow(stderr, &tail, &ready));
    match outcome.recv() {
        Ok(()) => Ok(()),
        Err(_) => Err(Vec::from(std::mem::take(&mut *log.lock())).join("\n")),
    }
}

fn follow(
    stderr: ChildStderr,
    tail: &Mutex<VecDeque<String>>,
    ready: &std::sync::mpsc::Sender<()>,
) {
    for line in BufReader::new(stderr).lines() {
        let Ok(line) = line else {
            return;
        };
        if line.contains("database system is ready to accept connections") {
            let _ = ready.send(());
        }
        let mut tail = tail.lock();
        if tail.len() == LOG_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// Runs a program to its end.
fn complete(mut command: Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    assert!(
        output.status.success(),
        "{program} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
