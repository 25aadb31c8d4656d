//! One namespace and one database for workers of two editions: what one has admitted, the other finishes (issue "the
//! worker in a fleet", item 7; D8, T2).

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::activity::{self, Event};
use super::load::{Kind, Load, all_executed};
use super::process::Running;
use super::python::environment;
use super::rig::{Member, PATIENCE, Rig, Size, TOKEN, clean};

const TTL: Duration = Duration::from_secs(2);
/// Longer than any test: whoever takes that long over an item never finishes it.
const FOREVER: Duration = Duration::from_secs(3_600);

/// Which worker of the rig; there is one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edition {
    Rust = 0,
    Python = 1,
}

impl Edition {
    fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Rust => Self::Python,
            Self::Python => Self::Rust,
        }
    }
}

/// A worker of each edition behind one node.
struct Mixed {
    rig: Rig,
}

impl Mixed {
    /// A fleet with one worker yet.
    async fn start(first: Edition) -> Self {
        environment();
        let size = Size {
            nodes: 1,
            workers: 0,
            lease_ttl: TTL,
        };
        let mut rig = Rig::start(size).await;
        let names = ["rust-ledger", "python-ledger"];
        rig.workers
            .extend(names.map(|name| Member::new(name.to_owned())));
        let mut mixed = Self { rig };
        mixed.run(first).await;
        mixed
    }

    /// Starts the worker of an edition, and waits until it is a part of the fleet.
    async fn run(&mut self, edition: Edition) {
        let index = edition as usize;
        match edition {
            Edition::Rust => self.rig.start_worker(index),
            Edition::Python => self.rig.workers[index].running = Some(python(&self.rig, index)),
        }
        self.rig.settled().await;
    }

    fn worker(&mut self, edition: Edition) -> &mut Member {
        &mut self.rig.workers[edition as usize]
    }

    /// Ends a worker by SIGTERM, and waits for it.
    async fn drain(&mut self, edition: Edition) {
        self.worker(edition).process().terminate();
        let status = self.worker(edition).process().ended_within(PATIENCE).await;
        assert!(
            status.success(),
            "{edition:?}: {status}\n{}",
            self.rig.logs()
        );
        self.worker(edition).running = None;
    }

    async fn ask(&self, path: &str) -> Option<Value> {
        let asked = self.rig.http.get(self.rig.url(path));
        let answer = asked.timeout(Duration::from_secs(5)).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        answer.json().await.ok()
    }

    async fn post(&self, path: &str, body: &Value) {
        let asked = self.rig.http.post(self.rig.url(path));
        let answer = asked
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("an answer");
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        assert!(
            status.is_success(),
            "{path}: {status} {text}\n{}",
            self.rig.logs()
        );
    }

    /// Admits an item that only `holder` takes long over, with two more behind it, to several ids, and waits until all
    /// of them are being worked on by it. Then the other worker comes.
    async fn hold(&mut self, holder: Edition, takes: Duration) -> Vec<String> {
        let ids: Vec<String> = (0..5).map(|n| format!("{}-{n}", holder.name())).collect();
        let takes = u64::try_from(takes.as_millis()).expect("short");
        for id in &ids {
            let path = format!("/ledgers/{id}/enqueue");
            let item = json!({ "id": "held", "takes": takes, "holds": holder.name() });
            self.post(&path, &item).await;
            for item in ["second", "third"] {
                self.post(&path, &json!({ "id": item })).await;
            }
        }
        let pid = u64::from(self.worker(holder).process().pid());
        for id in &ids {
            self.rig
                .until(&format!("{id} is worked on by {holder:?}"), async || {
                    let row = self.row(id)?;
                    let here = row["doc"]["writer"]["pid"] == pid;
                    (here && row["doc"]["~attempts"] == 1).then_some(())
                })
                .await;
        }
        self.run(holder.other()).await;
        ids
    }

    /// The row of an id's tray, asked of nobody but the database.
    fn row(&self, id: &str) -> Option<Value> {
        let rows = self.rig.history().run(&format!(
            "SELECT row_to_json(t) FROM pinned_tray_index AS t \
             WHERE ns = '/ledgers' AND id = '{id}' AND tray_ns = 'work' AND tray_id = '~'"
        ));
        serde_json::from_str(rows.trim()).ok()
    }

    /// Waits until the items of [`Mixed::hold`] are done, the held one on its second attempt, by `heir`; nobody asks
    /// for the ids meanwhile.
    async fn finished(&mut self, ids: &[String], heir: Edition) {
        let pid = u64::from(self.worker(heir).process().pid());
        for id in ids {
            let doc = self
                .rig
                .until(&format!("{id} is finished by {heir:?}"), async || {
                    let row = self.row(id)?;
                    (row["marked"] == false).then(|| row["doc"].clone())
                })
                .await;
            // At rest nothing but the results is left, whoever writes the row (T2.2, T2.4, T2.6).
            let epoch = &doc["writer"]["epoch"];
            let expected = json!({
                "executed": { "held": 2, "second": 1, "third": 1 },
                "writer": { "pid": pid, "epoch": epoch },
            });
            assert_eq!(doc, expected, "{id}\n{}", self.rig.logs());
        }
    }

    /// Checks that `reader` alone, which has not written these rows last, reads them.
    async fn readable(&mut self, ids: &[String], reader: Edition) {
        self.drain(reader.other()).await;
        for id in ids {
            let progress = self
                .rig
                .until(&format!("{id} is read by {reader:?}"), async || {
                    let who = self.ask(&format!("/ledgers/{id}/who")).await?;
                    assert_eq!(who["edition"], reader.name());
                    self.ask(&format!("/ledgers/{id}/")).await
                })
                .await;
            let expected = json!({
                "executed": { "held": 2, "second": 1, "third": 1 },
                "queued": 0,
            });
            assert_eq!(progress, expected, "{id}");
        }
    }
}

fn python(rig: &Rig, index: usize) -> Running {
    let mut command = Command::new(environment());
    let worker = &rig.workers[index];
    clean(&mut command)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/ledger.py"))
        .env("PORT", worker.port.to_string())
        .env("PINBOARD_URL", rig.nodes[0].url())
        .env("PINBOARD_TOKEN", TOKEN)
        .env("ADVERTISE_URL", worker.url())
        .env("PINNED_STORE", rig.dsn())
        .env("ACTIVITY_LOG", rig.activity_log())
        .env("HEARTBEAT_MS", (TTL / 5).as_millis().to_string())
        .env("LEASE_BUFFER_MS", (TTL / 4).as_millis().to_string())
        .env("DRAIN_MS", "10000");
    Running::start_watched(command, &rig.log(&worker.name), rig.witness())
}

async fn killed(holder: Edition) {
    let mut fleet = Mixed::start(holder).await;
    let held = fleet.hold(holder, FOREVER).await;
    fleet.worker(holder).kill();
    fleet.finished(&held, holder.other()).await;
    fleet.run(holder).await;
    fleet.readable(&held, holder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_python_has_admitted_rust_finishes_after_a_kill() {
    // D8.7, T2, T11.2, D1.3
    killed(Edition::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_rust_has_admitted_python_finishes_after_a_kill() {
    // D8.7, T2, T11.2, D1.3
    killed(Edition::Rust).await;
}

/// The holder is stopped in the middle of an item, and goes on when the other one has finished it: its handler is due by
/// then, and its shadows write on.
async fn paused(holder: Edition) {
    const TAKES: Duration = Duration::from_secs(8);
    let mut fleet = Mixed::start(holder).await;
    let held = fleet.hold(holder, TAKES).await;
    let due = Instant::now() + TAKES;
    for id in &held {
        fleet
            .post(&format!("/ledgers/{id}/shadow"), &Value::Null)
            .await;
    }
    let pid = fleet.worker(holder).process().pid();
    fleet.worker(holder).process().stop();
    fleet.finished(&held, holder.other()).await;
    tokio::time::sleep_until(due.into()).await;
    fleet.worker(holder).process().go_on();
    let rig = &fleet.rig;
    for id in &held {
        rig.until(
            &format!("the shadow of {id} in {holder:?} is refused"),
            async || {
                let lines = activity::read(&rig.activity_log());
                let mut refused = lines
                    .iter()
                    .filter(|line| line.event == Event::Refused && line.pid == pid);
                refused.any(|line| line.id == *id).then_some(())
            },
        )
        .await;
    }
    rig.settled().await;
    // Nothing of the late attempt is to be seen, and the one who was late reads what the other has written.
    fleet.finished(&held, holder.other()).await;
    fleet.readable(&held, holder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_python_worker_writes_nothing_once_rust_has_taken_over() {
    // D2.2, D2.4, D16.4, P4.6
    paused(Edition::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_rust_worker_writes_nothing_once_python_has_taken_over() {
    // D2.2, D2.4, D16.4, P4.6
    paused(Edition::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_either_edition_under_load_hands_its_work_to_the_other() {
    // Promise 3, D18.10, P5.10
    let mut fleet = Mixed::start(Edition::Rust).await;
    fleet.run(Edition::Python).await;
    let load = Load::start(&fleet.rig, "mixed", Kind::Enqueue, 4, 6);
    tokio::time::sleep(TTL / 2).await;
    for edition in [Edition::Python, Edition::Rust] {
        fleet.drain(edition).await;
        tokio::time::sleep(TTL / 2).await;
        fleet.run(edition).await;
        tokio::time::sleep(TTL / 2).await;
    }
    let outcome = load.end().await;
    assert!(outcome.items() > 0, "{:?}", outcome.errors);
    all_executed(&fleet.rig, 0, &outcome.confirmed).await;
    println!(
        "{} requests, {} items confirmed and executed, errors: {:?}",
        outcome.sent,
        outcome.items(),
        outcome.errors
    );
}
