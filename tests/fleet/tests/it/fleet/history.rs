//! Every write that reached the database, and the rule of the fence: none under an epoch after a higher one was acquired
//! (D2.2, D2.4, D16.4).

use std::collections::HashMap;
use std::fmt;
use std::process::Command;

use pinned::durability::StateStore;
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned_testing::PostgresServer;
use serde::Deserialize;

use super::lives::Owners;

/// The namespace of the workers of these tests, who sign what they write.
const SIGNED: &str = "/ledgers";

/// One entry of the history, in its order.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Entry {
    seq: i64,
    what: What,
    ns: String,
    id: String,
    tray: String,
    epoch: Option<u64>,
    pid: Option<u32>,
    session: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Acquired,
    Written,
    Deleted,
    Forgotten,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seq,
            what,
            ns,
            id,
            tray,
            epoch,
            pid,
            session,
        } = self;
        write!(
            f,
            "#{seq} {what:?} {ns}/{id} {tray} under epoch {epoch:?} by process {pid:?} in session {session:?}"
        )
    }
}

/// The history that a database keeps of itself.
pub(super) struct History {
    psql: std::path::PathBuf,
    dsn: String,
}

impl History {
    /// Has the tables made by the store's own setup, and every write to them noted from then on.
    pub(super) async fn keep(postgres: &PostgresServer, dsn: &str) -> Self {
        let store = PostgresStore::from_dsn(dsn, PostgresOptions::new()).expect("a DSN");
        store.setup().await.expect("tables");
        let history = Self {
            psql: postgres.binary("psql"),
            dsn: dsn.to_owned(),
        };
        history.run(include_str!("history.sql"));
        history
    }

    /// Runs statements, and gives what they print.
    ///
    /// # Panics
    ///
    /// When the database refuses them, or is not there.
    pub(super) fn run(&self, statements: &str) -> String {
        let output = Command::new(&self.psql)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set=ON_ERROR_STOP=1", "--command", statements, &self.dsn])
            .output()
            .expect("psql runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {errors}");
        String::from_utf8(output.stdout).expect("PostgreSQL writes UTF-8")
    }

    pub(super) fn read(&self) -> Vec<Entry> {
        let rows = self.run("SELECT row_to_json(h) FROM fleet_history AS h ORDER BY seq");
        rows.lines()
            .map(|row| serde_json::from_str(row).unwrap_or_else(|error| panic!("{error}: {row}")))
            .collect()
    }
}

/// Checks that the fence let nothing through, and gives how many writes there were:
///
/// - epochs of an id only rise;
/// - a row is written under the epoch that was acquired last, by whoever claims to write;
/// - one process writes under one epoch, the one that set the id up or ran it under it (`owners`).
///
/// # Errors
///
/// Says what broke the rule.
pub(super) fn check(entries: &[Entry], mut owners: Owners) -> Result<usize, String> {
    let mut acquired: HashMap<(&str, &str), u64> = HashMap::new();
    let mut writes = 0;
    for entry in entries {
        let current = acquired.entry((&entry.ns, &entry.id)).or_insert(0);
        match entry.what {
            What::Acquired => {
                let epoch = entry.epoch.ok_or_else(|| unclear(entry))?;
                if epoch < *current {
                    return Err(format!("an epoch fell, from {current}: {entry}"));
                }
                *current = epoch;
            }
            What::Written if entry.ns == SIGNED => {
                let (Some(epoch), Some(pid)) = (entry.epoch, entry.pid) else {
                    return Err(unclear(entry));
                };
                if epoch != *current {
                    return Err(format!(
                        "a write under epoch {epoch} got through while {current} was the one: {entry}"
                    ));
                }
                let owner = owners.entry((entry.id.clone(), epoch));
                let owner = *owner.or_insert(pid);
                if owner != pid {
                    return Err(format!(
                        "{pid} wrote under an epoch that was {owner}'s: {entry}"
                    ));
                }
                writes += 1;
            }
            What::Written | What::Deleted => {}
            What::Forgotten => return Err(format!("an epoch was forgotten: {entry}")),
        }
    }
    Ok(writes)
}

fn unclear(entry: &Entry) -> String {
    format!("nobody signed this: {entry}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(what: What, epoch: u64, pid: u32) -> Entry {
        Entry {
            seq: 0,
            what,
            ns: SIGNED.to_owned(),
            id: "a".to_owned(),
            tray: "work/~".to_owned(),
            epoch: Some(epoch),
            pid: Some(pid),
            session: String::new(),
        }
    }

    #[test]
    fn writes_under_the_epoch_that_is_the_one_are_counted() {
        let entries = [
            entry(What::Acquired, 1, 0),
            entry(What::Written, 1, 1),
            entry(What::Acquired, 2, 0),
            entry(What::Written, 2, 2),
            entry(What::Written, 2, 2),
        ];
        assert_eq!(check(&entries, Owners::new()), Ok(3));
    }

    #[test]
    fn a_late_write_is_found() {
        let entries = [
            entry(What::Acquired, 1, 0),
            entry(What::Written, 1, 1),
            entry(What::Acquired, 2, 0),
            entry(What::Written, 1, 1),
        ];
        let error = check(&entries, Owners::new()).expect_err("a late write");
        assert!(error.contains("got through while 2"), "{error}");
    }

    #[test]
    fn a_write_without_an_acquisition_and_a_fallen_epoch_are_found() {
        let ahead = [entry(What::Acquired, 1, 0), entry(What::Written, 2, 1)];
        check(&ahead, Owners::new()).expect_err("not acquired");
        let back = [entry(What::Acquired, 2, 0), entry(What::Acquired, 1, 0)];
        check(&back, Owners::new()).expect_err("an epoch that fell");
    }

    #[test]
    fn a_write_under_the_epoch_of_another_process_is_found() {
        let entries = [
            entry(What::Acquired, 1, 0),
            entry(What::Written, 1, 1),
            entry(What::Written, 1, 2),
        ];
        check(&entries, Owners::new()).expect_err("two writers");
        // Also where the one who had it has written nothing.
        let owners = Owners::from([(("a".to_owned(), 1), 7)]);
        check(&entries[..2], owners).expect_err("not its epoch");
    }

    #[tokio::test]
    async fn a_write_past_the_fence_is_found_in_the_database() {
        // Issue "the worker in a fleet", item 8: the checker itself
        let postgres = PostgresServer::start().await;
        let dsn = postgres.create_database().await;
        let history = History::keep(&postgres, &dsn).await;
        let put = |epoch: u64, pid: u32| {
            format!(
                "INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc) VALUES \
                 ('/ledgers', 'a', 'work', '~', true, '{{\"writer\": {{\"pid\": {pid}, \"epoch\": {epoch}}}}}') \
                 ON CONFLICT (ns, id, tray_ns, tray_id) DO UPDATE SET doc = EXCLUDED.doc"
            )
        };
        history.run("INSERT INTO pinned_epoch VALUES ('/ledgers', 'a', 4)");
        history.run(&put(4, 1));
        history.run("UPDATE pinned_epoch SET epoch = 5");
        history.run(&put(5, 2));
        assert_eq!(check(&history.read(), Owners::new()), Ok(2));
        // No statement of a store's would do this.
        history.run(&put(4, 1));
        let error = check(&history.read(), Owners::new()).expect_err("a late write");
        assert!(error.contains("under epoch 4"), "{error}");
    }
}
