//! The store in a file: the contract, other processes, and its end.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;

use futures_util::future::join_all;
use pinned::durability::{
    Claim, Doc, InstanceKey, RowFilter, SqliteStore, StateStore, StoreError, TrayKey,
};
use pinned_testing::conformance;

fn claim(id: &str, epoch: u64) -> Claim {
    Claim::new(InstanceKey::new("/rooms", id), epoch)
}

fn work() -> TrayKey {
    TrayKey::new("work", "~")
}

fn number(n: usize) -> Doc {
    Doc::parse(format!("{{\"n\":{n}}}")).expect("an object")
}

async fn ready(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).expect("the store");
    store.setup().await.expect("setup");
    store
}

// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    // A handle of its own each time: the suite meets two stores on one file.
    conformance::state_store(|| async {
        Arc::new(SqliteStore::open(&path).expect("the store")) as Arc<dyn StateStore>
    })
    .await;
}

// D8.3
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn many_open_and_set_up_a_new_file_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    let opening = (0..8).map(|n| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || SqliteStore::open(path).map(|store| (n, store)))
    });
    let stores = join_all(opening)
        .await
        .into_iter()
        .map(|opened| opened.expect("no panic"));
    let stores: Vec<_> = stores.map(|opened| opened.expect("the store")).collect();
    for set_up in join_all(stores.iter().map(|(_, store)| store.setup())).await {
        set_up.expect("setup");
    }
    for (n, store) in &stores {
        let set = store.set_tray(claim(&n.to_string(), 1), work(), true, number(*n));
        set.await.expect("set");
    }
    let marked = stores[0].1.marked_instances(None, 100).await;
    assert_eq!(marked.expect("the marked").len(), 8);
}

// Whoever opens a new file changes the mode of its journal, and of two that do so at once SQLite turns one away.
#[test]
fn many_threads_open_many_new_files_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let together = Barrier::new(8);
    let open_all = || -> Vec<_> {
        let opened = (0..50).map(|n| {
            together.wait();
            SqliteStore::open(folder.path().join(format!("{n}.db"))).map(drop)
        });
        opened.collect()
    };
    let opened: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open_all)).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        ended.flatten().collect()
    });
    for opened in opened {
        opened.expect("the store");
    }
}

// D2.1: the fence is in the file, and not in the process.
#[tokio::test]
async fn two_stores_on_one_file_fence_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    let (one, other) = (ready(&path).await, ready(&path).await);
    one.set_tray(claim("blue", 1), work(), true, number(1))
        .await
        .expect("set");
    let seen = other
        .list(claim("blue", 2), RowFilter::all())
        .await
        .expect("list");
    assert_eq!(seen.len(), 1);
    let late = one
        .set_tray(claim("blue", 1), work(), true, number(2))
        .await;
    assert!(late.expect_err("fenced").is_fence_lost());
    other
        .set_tray(claim("blue", 2), work(), true, number(3))
        .await
        .expect("set");
    let late = one.get_tray(claim("blue", 1), work()).await;
    assert!(late.expect_err("fenced").is_fence_lost());
}

// D15.3
#[tokio::test]
async fn what_was_confirmed_is_there_for_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    let store = ready(&path).await;
    store.hold_alone().await.expect("held");
    store.hold_alone().await.expect("held already");
    store
        .set_tray(claim("blue", 4), work(), true, number(1))
        .await
        .expect("set");
    drop(store);

    let store = ready(&path).await;
    store.hold_alone().await.expect("let go of");
    let late = store.get_tray(claim("blue", 3), work()).await;
    assert!(late.expect_err("fenced").is_fence_lost());
    let row = store.get_tray(claim("blue", 4), work()).await.expect("get");
    assert_eq!(row.map(|row| row.doc), Some(number(1)));
}

#[tokio::test]
async fn operations_on_their_way_are_done_when_the_store_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    let store = ready(&path).await;
    let sets: Vec<_> = (0..500)
        .map(|n| store.set_tray(claim(&n.to_string(), 1), work(), true, number(n)))
        .collect();
    drop(store);
    for set in join_all(sets).await {
        set.expect("set");
    }
    let store = ready(&path).await;
    let marked = store.marked_instances(None, 1_000).await;
    assert_eq!(marked.expect("the marked").len(), 500);
}

#[tokio::test]
async fn epochs_beyond_what_the_file_holds_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ready(&folder.path().join("pinned.db")).await;
    let refused = store.list(claim("blue", u64::MAX), RowFilter::all()).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid(_))),
        "{refused:?}"
    );
}

const HOLDER: &str = "PINNED_TEST_HOLD";

/// Not a test by itself: the other process of the one below.
#[tokio::test]
async fn holds_the_store_until_it_is_killed() {
    let Some(path) = env::var_os(HOLDER) else {
        return;
    };
    let store = ready(Path::new(&path)).await;
    store.hold_alone().await.expect("held");
    store
        .set_tray(claim("blue", 7), work(), true, number(7))
        .await
        .expect("set");
    eprintln!("held");
    // Until the other end is closed.
    let _ = std::io::stdin().read_to_end(&mut vec![]);
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_second_process_is_told_who_holds_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pinned.db");
    let holder = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "sqlite::holds_the_store_until_it_is_killed",
            "--nocapture",
        ])
        .env(HOLDER, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut holder = Killed(holder.expect("the other process"));
    let said = BufReader::new(holder.0.stderr.take().expect("its words"));
    assert!(
        said.lines()
            .map_while(Result::ok)
            .any(|line| line == "held")
    );

    let store = ready(&path).await;
    let refused = store.hold_alone().await.expect_err("it is held");
    let StoreError::Held { holder: named, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert!(
        named.starts_with(&format!("process {} on ", holder.0.id())),
        "{named}"
    );
    // Fences hold across processes all the same.
    let late = store.list(claim("blue", 6), RowFilter::all()).await;
    assert!(late.expect_err("fenced").is_fence_lost());

    // However it ends, the store is free, and has what was confirmed.
    holder.0.kill().expect("the kill");
    holder.0.wait().expect("its end");
    store.hold_alone().await.expect("free");
    let row = store.get_tray(claim("blue", 7), work()).await.expect("get");
    assert_eq!(row.map(|row| row.doc), Some(number(7)));
}
