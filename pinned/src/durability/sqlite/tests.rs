//! What needs a hand in the file, or in the thread's work.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::Connection;
use tempfile::TempDir;

use super::job::{Job, job};
use super::options::SqliteOptions;
use super::queue::Queue;
use super::store::SqliteStore;
use super::tables::Opened;
use super::{file, writer};
use crate::durability::{
    Claim, Doc, InstanceKey, RowFilter, RowOp, StateStore, StoreError, StoreFuture, TrayKey,
};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn claim(id: &str, epoch: u64) -> Claim {
    Claim::new(InstanceKey::new("/rooms", id), epoch)
}

fn work() -> TrayKey {
    TrayKey::new("work", "~")
}

/// What the error and its causes say.
fn chain(error: &StoreError) -> String {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

#[tokio::test]
async fn the_tables_are_named_and_stamped_as_in_postgres() {
    let folder = folder();
    let path = folder.path().join("pinned.db");
    let store = SqliteStore::options(&path).env("eu").hostname("w1");
    let store = store.open().expect("the store");
    store.setup().await.expect("setup");
    let set = store.set_tray(claim("blue", 3), work(), true, Doc::empty());
    set.await.expect("set");
    let file = Connection::open(&path).expect("the file");
    // D8.1, D8.2, D8.6
    let row: (String, String, i64, String, String, String) = file
        .query_row(
            "SELECT ns, tray_id, marked, doc, env, hostname FROM pinned_tray_index WHERE id = 'blue'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)),
        )
        .expect("the row");
    let [ns, tray, doc, env, hostname] = ["/rooms", "~", "{}", "eu", "w1"].map(str::to_owned);
    assert_eq!(row, (ns, tray, 1, doc, env, hostname));
    let epoch: i64 = file
        .query_row(
            "SELECT epoch FROM pinned_epoch WHERE id = 'blue'",
            [],
            |row| row.get(0),
        )
        .expect("the epoch");
    assert_eq!(epoch, 3);
    let plan: String = file
        .query_row(
            "EXPLAIN QUERY PLAN SELECT DISTINCT ns, id FROM pinned_tray_index
             WHERE marked = 1 AND (ns, id) > ('/a', 'b') ORDER BY ns, id LIMIT 9",
            [],
            |row| row.get(3),
        )
        .expect("the plan");
    assert!(plan.contains("INDEX pinned_tray_marked"), "{plan}");
}

#[tokio::test]
async fn a_newer_version_is_refused_and_left_alone() {
    let folder = folder();
    let path = folder.path().join("pinned.db");
    let file = Connection::open(&path).expect("the file");
    file.pragma_update(None, "user_version", 99)
        .expect("its version");
    let refused = SqliteStore::open(&path).expect_err("it is newer");
    assert!(
        matches!(
            refused,
            StoreError::TooNew {
                found: 99,
                known: 1,
                ..
            }
        ),
        "{refused:?}"
    );
    let mode: String = file
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .expect("its mode");
    assert_eq!(mode, "delete");

    // Made newer while it was open: `setup` looks again.
    file.pragma_update(None, "user_version", 0)
        .expect("its version");
    let store = SqliteStore::open(&path).expect("the store");
    file.pragma_update(None, "user_version", 2)
        .expect("its version");
    let refused = store.setup().await.expect_err("it is newer");
    assert!(
        matches!(refused, StoreError::TooNew { found: 2, .. }),
        "{refused:?}"
    );
}

#[test]
fn what_is_no_store_is_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let refused = |name: &str| chain(&SqliteStore::open(at(name)).expect_err("it is no store"));

    fs::write(
        at("notes.txt"),
        "no database, but long enough to be one at the first glance".repeat(99),
    )
    .expect("notes");
    assert!(
        refused("notes.txt").contains("notes.txt: is no SQLite database"),
        "{}",
        refused("notes.txt")
    );
    assert!(
        fs::read_to_string(at("notes.txt"))
            .expect("notes")
            .starts_with("no database")
    );

    fs::create_dir(at("folder")).expect("a folder");
    assert!(refused("folder").contains("folder: is no file"));
    assert!(refused("missing/pinned.db").contains("cannot be created"));

    let other = Connection::open(at("other.db")).expect("the file");
    other
        .pragma_update(None, "application_id", 77)
        .expect("its application");
    assert!(refused("other.db").contains("is the database of another program"));

    for unnamed in ["", ":memory:"] {
        let refused = SqliteStore::open(unnamed).expect_err("it names no file");
        assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let store = SqliteStore::open(folder.path().join("pinned.db")).expect("the store");
    store
        .hold_alone()
        .now_or_never()
        .expect("at once")
        .expect("held");
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn operations_before_setup_fail_and_those_after_it_do_not() {
    let folder = folder();
    let store = SqliteStore::open(folder.path().join("pinned.db")).expect("the store");
    let early = store.list(claim("blue", 1), RowFilter::all()).await;
    assert!(chain(&early.expect_err("no tables")).contains("no such table"));
    store.setup().await.expect("setup");
    store
        .list(claim("blue", 1), RowFilter::all())
        .await
        .expect("tables");
}

#[tokio::test]
async fn a_row_that_somebody_damaged_is_an_error_of_its_own() {
    let folder = folder();
    let path = folder.path().join("pinned.db");
    let store = SqliteStore::open(&path).expect("the store");
    store.setup().await.expect("setup");
    for id in ["blue", "red"] {
        let set = store.set_tray(claim(id, 1), work(), true, Doc::empty());
        set.await.expect("set");
    }
    let file = Connection::open(&path).expect("the file");
    for doc in ["[1]", "{", ""] {
        file.execute(
            "UPDATE pinned_tray_index SET doc = ?1 WHERE id = 'blue'",
            [doc],
        )
        .expect("the damage");
        let (damaged, sound) = tokio::join!(
            store.get_tray(claim("blue", 1), work()),
            store.get_tray(claim("red", 1), work()),
        );
        assert!(
            chain(&damaged.expect_err("it is damaged"))
                .contains("row work/~ of /rooms/blue is damaged")
        );
        assert!(sound.expect("it is sound").is_some());
    }
}

/// A thread on a file that may grow by a few pages only, with all of `jobs` in its first group.
fn on_a_full_disk(folder: &TempDir, jobs: Vec<Box<dyn Job>>) {
    let options = SqliteOptions::new(&folder.path().join("pinned.db"));
    let (connection, place) = file::open(&options).expect("the file");
    connection.execute_batch("BEGIN").expect("a transaction");
    super::schema::create(&connection, place.path())
        .expect("tables")
        .expect("tables");
    connection
        .execute_batch("COMMIT; PRAGMA max_page_count = 40")
        .expect("a full disk");
    let queue = Arc::new(Queue::default());
    for job in jobs {
        queue.push(job);
    }
    let opened = Opened {
        connection,
        place,
        env: options.env,
        hostname: options.hostname,
    };
    let thread = writer::start(Arc::clone(&queue), opened).expect("the thread");
    queue.close();
    thread.join().expect("its end");
}

fn set(id: &'static str, epoch: u64, bytes: usize) -> (Box<dyn Job>, StoreFuture<()>) {
    let doc = Doc::parse(format!("{{\"text\":\"{}\"}}", "x".repeat(bytes))).expect("an object");
    let op = RowOp::set(work(), true, doc);
    let claim = claim(id, epoch);
    let (job, answer) = job(bytes, move |tables| {
        Ok(match tables.acquire(&claim)? {
            Ok(()) => Ok(tables.apply(&claim.instance, &op)?),
            Err(refused) => Err(refused),
        })
    });
    (job, answer.wait(false).boxed())
}

#[tokio::test]
async fn of_a_group_only_those_fail_that_have_no_room_or_no_right() {
    let folder = folder();
    let (small, small_answer) = set("small", 1, 10);
    let (large, large_answer) = set("large", 1, 1 << 20);
    let (newer, newer_answer) = set("fenced", 2, 10);
    let (fenced, fenced_answer) = set("fenced", 1, 20);
    let (last, last_answer) = set("last", 1, 10);
    on_a_full_disk(&folder, vec![small, large, newer, fenced, last]);

    small_answer.await.expect("room for a small one");
    newer_answer.await.expect("room for a small one");
    last_answer.await.expect("room for a small one");
    assert!(fenced_answer.await.expect_err("fenced").is_fence_lost());
    let full = chain(&large_answer.await.expect_err("no room"));
    assert!(full.contains("database or disk is full"), "{full}");

    let store = SqliteStore::open(folder.path().join("pinned.db")).expect("the store");
    let marked = store.marked_instances(None, 10).await.expect("the marked");
    let marked: Vec<&str> = marked.iter().map(|instance| &*instance.id).collect();
    assert_eq!(marked, ["fenced", "last", "small"]);
}

// The one who holds the file is waited for once, and not by each of those who wait behind.
#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "SQLite waits by the real clock")]
async fn a_file_that_somebody_holds_fails_all_who_wait_at_once() {
    let folder = folder();
    let path = folder.path().join("pinned.db");
    let patience = std::time::Duration::from_millis(100);
    let store = SqliteStore::options(&path).busy_timeout(patience).open();
    let store = store.expect("the store");
    store.setup().await.expect("tables");
    let holder = rusqlite::Connection::open(&path).expect("the file");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let started = std::time::Instant::now();
    let writes =
        (0..100).map(|n| store.set_tray(claim(&n.to_string(), 1), work(), true, Doc::empty()));
    for outcome in futures_util::future::join_all(writes).await {
        let busy = chain(&outcome.expect_err("it is held"));
        assert!(busy.contains("locked"), "{busy}");
    }
    // A few groups at most, as they came.
    assert!(started.elapsed() < 30 * patience, "{:?}", started.elapsed());
    holder.execute_batch("COMMIT").expect("the lock is free");
    let written = store.set_tray(claim("1", 1), work(), true, Doc::empty());
    written.await.expect("nobody holds it");
}

// D2.1: an epoch is in force once it is stored, and what was rolled back is not.
#[tokio::test]
async fn an_epoch_that_was_rolled_back_fences_nobody() {
    let folder = folder();
    let (large, large_answer) = set("blue", 7, 1 << 20);
    let (earlier, earlier_answer) = set("blue", 3, 10);
    let (before, before_answer) = set("blue", 2, 10);
    on_a_full_disk(&folder, vec![large, earlier, before]);
    large_answer.await.expect_err("no room");
    earlier_answer.await.expect("nothing stands above it");
    let fenced = before_answer.await.expect_err("fenced");
    assert!(fenced.is_fence_lost());
}

// D2.1: what one connection knows of the epochs, another may have changed.
#[tokio::test]
async fn stores_of_one_file_fence_each_other_at_each_turn() {
    let folder = folder();
    let path = folder.path().join("pinned.db");
    let stores = [(); 2].map(|()| SqliteStore::open(&path).expect("the store"));
    stores[0].setup().await.expect("tables");
    for epoch in 1..40 {
        let [holder, former] = [epoch % 2, (epoch + 1) % 2].map(|n| &stores[n as usize]);
        for _ in 0..2 {
            let written = holder.set_tray(claim("blue", epoch), work(), true, Doc::empty());
            written.await.expect("the highest epoch");
        }
        let late = former.set_tray(claim("blue", epoch - 1), work(), true, Doc::empty());
        assert!(late.await.expect_err("fenced").is_fence_lost(), "{epoch}");
        // The same epoch may come by way of another connection.
        let same = former.get_tray(claim("blue", epoch), work()).await;
        assert!(same.expect("the highest epoch").is_some());
    }
}

#[tokio::test]
async fn what_was_dropped_before_it_was_begun_is_passed_over() {
    let folder = folder();
    let (dropped, answer) = set("dropped", 1, 10);
    drop(answer);
    let (kept, kept_answer) = set("kept", 1, 10);
    on_a_full_disk(&folder, vec![dropped, kept]);
    kept_answer.await.expect("set");
    let store = SqliteStore::open(folder.path().join("pinned.db")).expect("the store");
    assert_eq!(
        store
            .marked_instances(None, 10)
            .await
            .expect("the marked")
            .len(),
        1
    );
}

#[tokio::test]
async fn nothing_is_confirmed_that_is_not_where_it_will_be_looked_for() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 4] = [
        ("removed or replaced", |path| {
            fs::remove_file(path).expect("removed");
        }),
        ("removed or replaced", |path| {
            fs::rename(path, path.with_extension("old")).expect("moved away");
        }),
        ("removed or replaced", |path| {
            let other = path.with_extension("other");
            fs::copy(path, &other).expect("copied");
            fs::rename(other, path).expect("replaced");
        }),
        ("write-ahead log was removed", |path| {
            fs::remove_file(path.with_extension("db-wal")).expect("removed");
        }),
    ];
    for (expected, damage) in cases {
        let folder = folder();
        let path = folder.path().join("odd name\u{e9} %20?#.db");
        let store = SqliteStore::open(&path).expect("the store");
        store.setup().await.expect("setup");
        let set = || store.set_tray(claim("blue", 1), work(), true, Doc::empty());
        set().await.expect("set");
        damage(&path);
        let refused = chain(&set().await.expect_err(expected));
        assert!(refused.contains(expected), "{refused}");
        // What is read is not what the next process would read.
        let read = store.get_tray(claim("blue", 1), work());
        read.await.expect_err(expected);
    }
}
