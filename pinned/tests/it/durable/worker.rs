//! The store of a worker: which one, when it is opened, and what the worker says of it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinned::durability::{MemoryStore, SqliteStore};
use pinned::{Error, PinnedWorker, WorkerBuilder, pinned_api, route};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use super::account::Account;
use super::store::Switched;
use crate::app::{App, Board, pass};

/// Keeps nothing.
#[derive(Default)]
struct Plain;

#[pinned_api]
impl Plain {
    #[route::get("/")]
    async fn here(&self) -> &'static str {
        "here"
    }
}

fn accounts() -> WorkerBuilder {
    PinnedWorker::builder().host::<Account>("/accounts")
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_set_up_stops_the_start_and_another_start_may_do() {
    let store = Switched::new();
    store.fail_setups(true);
    let worker = accounts()
        .store(store.clone())
        .build()
        .expect("a valid worker");
    for _ in 0..2 {
        let error = worker.run_lifespan().await.expect_err("refused");
        assert!(matches!(error, Error::Store(_)), "{error:?}");
        assert_eq!(
            format!("{error:?}"),
            "the state store cannot be used: the state store failed: the disk is not there"
        );
    }
    store.fail_setups(false);
    let running = worker.run_lifespan().await.expect("it starts");
    let again = worker.run_lifespan().await.expect_err("it runs");
    assert!(matches!(again, Error::AlreadyStarted), "{again:?}");
    running.shutdown().await.expect("a clean end");
}

#[tokio::test]
async fn a_file_belongs_to_one_worker_at_a_time_unless_there_is_a_control_plane() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("accounts.db");
    let store = || SqliteStore::open(&path).expect("the store");
    let first = App::start(accounts().store(store())).await;
    first.post("/accounts/a/add/4").send().await.assert_ok("4");

    let second = accounts().store(store()).build().expect("a valid worker");
    let refused = second.run_lifespan().await.expect_err("it is held");
    let said = format!("{refused:?}");
    let holder = format!("process {} on ", std::process::id());
    assert!(
        said.contains("accounts.db") && said.contains(&holder),
        "{said}"
    );
    assert!(said.contains("PINNED_STORE"), "{said}");

    let plane = std::sync::Arc::new(Board::default());
    App::start(accounts().placements(plane).store(store())).await;

    first.shutdown().await;
    drop(first);
    let running = second.run_lifespan().await.expect("it is free");
    running.shutdown().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_given_serves_structs_that_keep_nothing_too() {
    let builder = PinnedWorker::builder()
        .host::<Plain>("/plain")
        .store(MemoryStore::new());
    let app = App::start(builder).await;
    assert_eq!(app.get("/plain/a").text().await, "here");
    pass(10).await;
    app.shutdown().await;
}

/// What the process that [`Server::start`] makes is to serve.
const SERVES: &str = "PINNED_TEST_SERVES_STORE";

/// Not a test by itself: the other process of those below.
#[tokio::test]
async fn serves_until_it_is_killed() {
    let Ok(what) = std::env::var(SERVES) else {
        return;
    };
    let builder = match &*what {
        "plain" => PinnedWorker::builder().host::<Plain>("/plain"),
        _ => accounts(),
    };
    let worker = builder.environment().bind(([127, 0, 0, 1], 0)).build();
    let ended = match worker {
        Ok(worker) => worker.serve().await,
        Err(error) => Err(error),
    };
    eprintln!("ended: {ended:?}");
}

/// A process that serves in a folder of its own, killed when this is dropped.
struct Server {
    _child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Server {
    fn start(what: &str, folder: &Path, store: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command
            .args([
                "--exact",
                "durable::worker::serves_until_it_is_killed",
                "--nocapture",
            ])
            .current_dir(folder)
            .env(SERVES, what)
            .env_remove("PINNED_STORE")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(store) = store {
            command.env("PINNED_STORE", store);
        }
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self {
            _child: child,
            lines,
        }
    }

    /// What it says up to the line that begins with `last`.
    async fn says(&mut self, last: &str) -> String {
        let mut said = String::new();
        while let Some(line) = within(self.lines.next_line()).await.expect("readable") {
            said.push_str(&line);
            said.push('\n');
            if line.trim_start().starts_with(last) {
                return said;
            }
        }
        panic!("no line begins with {last:?}: {said}");
    }
}

#[allow(clippy::disallowed_methods, reason = "a process lives in real time")]
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("in good time")
}

fn files(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).expect("a folder");
    let names = found.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn structs_that_keep_nothing_open_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start("plain", folder.path(), None);
    let said = server.says("/plain").await;
    assert!(said.contains("  store  none"), "{said}");
    assert_eq!(files(folder.path()), [""; 0]);
}

#[tokio::test]
async fn state_goes_to_a_file_beside_the_program_where_nothing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start("accounts", folder.path(), None);
    let said = server.says("/accounts").await;
    let place = folder
        .path()
        .canonicalize()
        .expect("a folder")
        .join("pinned.db");
    let line = format!("  store  sqlite, {}\n", place.display());
    assert!(said.contains(&line), "{said}");
    // A second process is told who is in its way.
    let mut second = Server::start("accounts", folder.path(), Some("sqlite:pinned.db"));
    let said = second.says("ended").await;
    let holder = server._child.id().expect("it runs");
    assert!(said.contains(&format!("process {holder} on ")), "{said}");
}

#[tokio::test]
async fn pinned_store_says_where_state_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start("accounts", folder.path(), Some("memory:"));
    let said = server.says("/accounts").await;
    assert!(said.contains("  store  memory"), "{said}");
    assert_eq!(files(folder.path()), [""; 0]);

    let mut server = Server::start("accounts", folder.path(), Some("sqlite:elsewhere.db"));
    let said = server.says("/accounts").await;
    assert!(said.contains("elsewhere.db\n"), "{said}");
    assert!(files(folder.path()).contains(&"elsewhere.db".to_owned()));

    for wrong in ["hunter2", "memory", "sqlite:", "sqlite:missing/x.db"] {
        let mut server = Server::start("accounts", folder.path(), Some(wrong));
        let said = server.says("ended: Err").await;
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!said.contains("serving on"), "{said}");
    }
}
