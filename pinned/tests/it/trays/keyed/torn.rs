//! A process that ends between two writes of rows (T13.11, edge case 19).

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::durability::MemoryStore;
use pinned::{BoxError, TrayError};

use super::{Hub, Job, Relay, Script, Sink, Switched, World, world_over};
use crate::app::{pass, settle};
use crate::durable::store::Writes;

/// What a handler admits under the key of its item.
type Body = fn(&mut Sink, Job);

/// How the rows are kept, and where the items go.
#[derive(Clone, Copy)]
struct Setting {
    batches: bool,
    /// The target closes whenever it is done, and is opened anew to let go of a key.
    closes: bool,
    body: Body,
}

impl Setting {
    fn store(self) -> Switched {
        match self.batches {
            true => Switched::new(),
            false => Switched::singles(MemoryStore::new()),
        }
    }

    /// A relay that admits `body` under `[r, n]`, and ends when all of it is durable.
    fn script(self) -> Script {
        let script = Script::default();
        script.relays(move |this, job, dispatch| async move {
            let sink = match self.closes {
                true => this.trays(Hub::SINKS)?.get_or_create("x").await?,
                false => this.tray(Hub::SINK).await?,
            };
            let key = ("r", job.n);
            dispatch.admit_once(key, &sink, |sink| (self.body)(sink, job))?;
            this.context().frontier()?.wait().await?;
            Ok(())
        });
        script
    }

    async fn admit(self, world: &World) -> pinned::durability::Receipt {
        let relay = world.relay().await;
        let admission = |relay: &mut Relay| relay.queue.extend([Job { n: 1 }, Job { n: 2 }]);
        relay.admit(admission).expect("open")
    }

    /// Two items through the relay; the process ends in write `stop`, and once more `later` writes after it came back.
    /// The world that is left, and whether all of these ends were reached.
    async fn crashed_at(self, stop: usize, later: Option<usize>) -> (World, bool) {
        let world = world_over(self.store(), self.script()).await;
        world.relay().await;
        settle().await;
        world.store.set(Writes::StopAfter(stop));
        let admitted = self.admit(&world).await.into_future();
        let domain = world.app.worker.domain().clone();
        let patience = std::time::Duration::from_secs(5);
        let promised = matches!(domain.timeout(patience, admitted).await, Ok(Ok(())));
        pass(10_000).await;
        let mut reached = world.store.is_stopped();
        let mut world = world.crash_into(self.script()).await;
        if let Some(later) = later {
            world.store.set(Writes::StopAfter(later));
            pass(20_000).await;
            reached &= world.store.is_stopped();
            world = world.crash_into(self.script()).await;
        }
        pass(20_000).await;
        if !promised && self.sunk(&world).is_none() {
            // It was lost, and never promised.
            let _ = self.admit(&world).await;
            pass(20_000).await;
        }
        (world, reached)
    }

    fn sunk(self, world: &World) -> Option<(bool, String)> {
        let (tray, id) = if self.closes {
            ("sinks", "x")
        } else {
            ("sink", "~")
        };
        world.row_of(tray, id).filter(|(_, doc)| doc != "{}")
    }

    /// Each item once, and nothing left of how it came there.
    fn assert_exact(self, world: &World, side: &str, told: &str) {
        let doc = format!(r#"{{"log":[1,2]{side}}}"#);
        assert_eq!(self.sunk(world), Some((false, doc)), "{told}");
        assert_eq!(world.row("relay"), (false, "{}".to_owned()), "{told}");
    }

    /// Stops in each write in turn, until one is not reached. How many there are.
    async fn sweep(self, side: &str) -> usize {
        for stop in 0.. {
            let (world, reached) = self.crashed_at(stop, None).await;
            self.assert_exact(&world, side, &format!("stopped in write {stop}"));
            if !reached {
                return stop;
            }
        }
        unreachable!("it ends")
    }
}

fn one(sink: &mut Sink, job: Job) {
    sink.queue.push(job);
}

fn two(sink: &mut Sink, job: Job) {
    sink.queue.push(job.clone());
    sink.side.push(job);
}

#[tokio::test(start_paused = true)]
async fn torn_after_any_write_each_item_is_admitted_exactly_once() {
    // T13.4, T13.10, T13.11, T13.13, edge case 19: the admission, the record, the settling, the acknowledgement
    for batches in [false, true] {
        for closes in [false, true] {
            let setting = Setting {
                batches,
                closes,
                body: one,
            };
            let writes = setting.sweep("").await;
            assert!(writes >= 4, "the sweep ended at once: {writes}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn torn_twice_each_item_is_admitted_exactly_once() {
    // T13.11, edge case 19
    for closes in [false, true] {
        let setting = Setting {
            batches: false,
            closes,
            body: one,
        };
        for stop in 1..16 {
            for later in 0..6 {
                let (world, _) = setting.crashed_at(stop, Some(later)).await;
                let told = format!("stopped in write {stop}, then in {later}");
                setting.assert_exact(&world, "", &told);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_two_appends_lands_whole_and_once() {
    // T13.8, edge case 19
    let setting = Setting {
        batches: false,
        closes: false,
        body: two,
    };
    let side = r#","side":[{"n":1,"~admit":["r",1]},{"n":2,"~admit":["r",2]}]"#;
    setting.sweep(side).await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_landed_without_its_note_absorbs_as_much_as_landed() {
    // T13.8, edge case 19: rows as another edition may leave them, with the first of two appends alone.
    let disk = MemoryStore::new();
    let key = |name: &str| pinned::durability::TrayKey::new(name, "~");
    let claim = || {
        let instance = pinned::durability::InstanceKey::new("/hubs", "a");
        pinned::durability::Claim::new(instance, 0)
    };
    let rows = [
        ("relay", r#"{"queue":[{"n":1}],"~attempts":1}"#),
        ("sink", r#"{"queue":[{"n":1,"~admit":["r",1]}]}"#),
    ];
    for (name, doc) in rows {
        use pinned::durability::{Doc, StateStore};
        let doc = Doc::parse(doc).expect("an object");
        disk.set_tray(claim(), key(name), true, doc)
            .await
            .expect("set");
    }
    let setting = Setting {
        batches: false,
        closes: false,
        body: |sink, job| {
            sink.queue.push(job.clone());
            sink.queue.push(Job { n: job.n + 10 });
            sink.side.push(job);
        },
    };
    let script = setting.script();
    let held = script.hold_sinks();
    let world = world_over(Switched::singles(disk), script).await;
    pass(10_000).await;
    assert_eq!(
        world.row("sink").1,
        r#"{"queue":[{"n":1,"~admit":["r",1]},{"n":11,"~admit":["r",1]}],"side":[{"n":1,"~admit":["r",1]}],"~attempts":1}"#
    );
    held.open();
    settle().await;
    assert_eq!(world.sunk().await, [1, 11]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_under_a_key_leaves_nothing_and_its_retry_admits() {
    // T13.9, edge case 33, as decided here: a failed segment leaves nothing.
    let world = world_over(Switched::singles(MemoryStore::new()), Script::default()).await;
    let errors = Arc::new(Mutex::new(Vec::new()));
    world.script.relays({
        let errors = Arc::clone(&errors);
        move |this, job, dispatch| {
            let errors = Arc::clone(&errors);
            async move {
                let sink = this.tray(Hub::SINK).await?;
                let attempt = dispatch.attempts();
                let admitted = dispatch.admit_once("k", &sink, |sink| {
                    sink.queue.push(job);
                    match attempt {
                        1 => Err("half way"),
                        _ => Ok(()),
                    }
                });
                if let Err(error) = admitted {
                    errors.lock().push(matches!(error, TrayError::Refused(_)));
                    return Err(BoxError::from(error));
                }
                Ok(())
            }
        }
    });
    world.send(1).await;
    pass(10_000).await;
    assert_eq!(*errors.lock(), [true]);
    assert_eq!(world.script.deliveries(), [(1, 1), (1, 2)]);
    assert_eq!(world.sunk().await, [1]);
    assert_eq!(world.row("sink"), (false, r#"{"log":[1]}"#.to_owned()));
}
