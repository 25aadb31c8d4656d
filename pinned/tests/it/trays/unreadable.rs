//! Values that can be written and not be read again: nothing durable depends on them.

use pinned::{
    Instance, Persistent, PersistentOutbox, PersistentQueue, PinnedWorker, Tray, TrayError,
    TrayHandle, pinned_api,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::store::Shelf;
use crate::app::{App, settle};

/// Anything can be written, and 13 not be read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Fussy(u64);

impl<'de> Deserialize<'de> for Fussy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            13 => Err(serde::de::Error::custom("13 is not read")),
            666 => panic!("666 is not read at all"),
            n => Ok(Self(n)),
        }
    }
}

impl Default for Fussy {
    fn default() -> Self {
        Self(1)
    }
}

#[derive(Tray)]
struct Shaky {
    #[tray(items)]
    jobs: PersistentQueue<u64>,
    queue: PersistentQueue<Fussy>,
    value: Persistent<Fussy>,
    outbox: PersistentOutbox<Fussy>,
    any: PersistentQueue<Value>,
    measure: Persistent<f64>,
    measures: PersistentQueue<f64>,
}

#[derive(Default)]
struct Ground;

#[pinned_api]
impl Ground {
    #[tray]
    async fn shaky(_this: Instance<Self>, _job: u64, _dispatch: pinned::Dispatch<Shaky>) {}
}

struct World {
    app: App,
    shelf: Shelf,
}

async fn world() -> World {
    let shelf = Shelf::new();
    let builder = PinnedWorker::builder()
        .host::<Ground>("/grounds")
        .store(shelf.clone());
    World {
        app: App::start(builder).await,
        shelf,
    }
}

impl World {
    async fn tray(&self) -> TrayHandle<Shaky> {
        let host = self.app.worker.hosted::<Ground>().expect("mounted");
        let ground = host.instance("a").await.expect("live");
        ground.tray(Ground::SHAKY).await.expect("open")
    }

    fn is_gone(&self) -> bool {
        let host = self.app.worker.hosted::<Ground>().expect("mounted");
        host.is_empty()
    }

    fn doc(&self) -> String {
        let instance = pinned::durability::InstanceKey::new("/grounds", "a");
        let rows = self.shelf.rows.rows(&instance);
        rows[0].state.doc.as_str().to_owned()
    }
}

/// Stores what `first` makes of the tray, and then fails a segment with what `second` does.
async fn fails_with(first: fn(&mut Shaky), second: fn(&mut Shaky)) -> (World, String) {
    let world = world().await;
    let tray = world.tray().await;
    tray.update(first).unwrap();
    settle().await;
    let before = world.doc();
    let failed = tray.admit(|shaky| {
        second(shaky);
        Err::<(), _>("told to fail")
    });
    assert!(matches!(failed, Err(TrayError::Refused(_))));
    // Nothing is written over what is stored.
    drop(tray.update(|shaky| shaky.jobs.push(7)));
    settle().await;
    (world, before)
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_cannot_be_taken_back_ends_the_instance_and_leaves_what_is_stored() {
    // T13.2
    type Change = fn(&mut Shaky);
    let cases: [(Change, Change); 7] = [
        (
            |shaky| shaky.queue.extend([2, 13, 3].map(Fussy)),
            |shaky| {
                shaky.queue.pop_front();
                shaky.queue.pop_front();
            },
        ),
        (
            |shaky| shaky.queue.extend([2, 13, 3].map(Fussy)),
            |shaky| {
                shaky.queue.remove(1);
            },
        ),
        (
            |shaky| shaky.queue.extend([2, 13, 3].map(Fussy)),
            |shaky| {
                shaky.queue.edit(1, |fussy| fussy.0 = 4);
            },
        ),
        (
            |shaky| shaky.queue.extend((0..200).map(|_| Fussy(13))),
            |shaky| shaky.queue.clear(),
        ),
        (
            |shaky| shaky.queue.push(Fussy(666)),
            |shaky| {
                shaky.queue.pop_front();
            },
        ),
        (
            |shaky| shaky.value.set(Fussy(13)),
            |shaky| shaky.value.set(Fussy(2)),
        ),
        (
            |shaky| {
                shaky.outbox.dispatch(Fussy(13));
            },
            |shaky| {
                shaky.outbox.ack();
            },
        ),
    ];
    for (index, (first, second)) in cases.into_iter().enumerate() {
        let (world, before) = fails_with(first, second).await;
        assert!(world.is_gone(), "{index}");
        assert_eq!(world.doc(), before, "{index}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_can_be_taken_back_goes_on() {
    // T13.2
    let (world, _) = fails_with(
        |shaky| shaky.queue.extend([2, 3].map(Fussy)),
        |shaky| shaky.queue.clear(),
    )
    .await;
    assert!(!world.is_gone());
    assert_eq!(world.doc(), r#"{"jobs":[7],"queue":[2,3]}"#);
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

#[tokio::test(start_paused = true)]
async fn what_no_parser_would_read_again_is_not_kept() {
    // T5.1, T4.1: a client may send what a parser just takes, and it stands deeper in a row.
    let world = world().await;
    let tray = world.tray().await;
    let keep = |value: Value| tray.admit(|shaky| shaky.any.push(value));
    for refused in [nested(121), nested(127), json!({"a": nested(120)})] {
        assert!(matches!(keep(refused), Err(TrayError::Encode { .. })));
    }
    assert!(tray.set_entry("raw", &nested(121)).is_err());
    for kept in [
        nested(120),
        json!("[".repeat(500)),
        json!("\\\"[".repeat(99)),
    ] {
        keep(kept).unwrap().await.unwrap();
    }
    // As the stores do that check what they read.
    pinned::durability::Doc::parse(world.doc()).expect("it can be read");
    assert!(!world.is_gone());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_number_is_not_kept() {
    // T4.1: as `null` it would be no `f64` for the next activation.
    let world = world().await;
    let tray = world.tray().await;
    for number in [f64::NAN, f64::INFINITY] {
        let set = tray.update(|shaky| shaky.measure.set(number));
        assert!(matches!(set, Err(TrayError::Encode { .. })));
        let pushed = tray.update(|shaky| shaky.measures.push(number));
        assert!(matches!(pushed, Err(TrayError::Encode { .. })));
    }
    tray.update(|shaky| shaky.measure.set(0.5)).unwrap();
    settle().await;
    assert!(!world.is_gone());
    assert_eq!(world.doc(), r#"{"measure":0.5}"#);
}
