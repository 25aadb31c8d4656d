mod hostile;

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::tray::field::{Field, KeyedAdmission};
use crate::tray::key::Key;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    n: u64,
}

/// What a store would hold of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
struct Disk {
    entry: Option<String>,
    chunks: BTreeMap<u64, String>,
}

impl Disk {
    /// The end of a segment that stands.
    fn commit<T: Serialize + serde::de::DeserializeOwned + Send + 'static>(
        &mut self,
        queue: &mut PersistentQueue<T>,
    ) {
        let changes = queue.changes().expect("JSON");
        if let Some(entry) = changes.entry {
            self.entry = entry.map(|text| text.to_string());
        }
        for (number, text) in changes.chunks {
            match text {
                Some(text) => self.chunks.insert(number, text.to_string()),
                None => self.chunks.remove(&number),
            };
        }
        queue.commit();
    }

    fn open<T: Serialize + serde::de::DeserializeOwned + Send + 'static>(
        &self,
    ) -> PersistentQueue<T> {
        let mut queue = PersistentQueue::declared();
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let entry = self.entry.as_deref().map(raw);
        let hydrated = queue.hydrate(entry.as_deref()).expect("ours");
        if let Some((from, to)) = hydrated.chunks {
            for number in from..to {
                let chunk = self.chunks.get(&number).expect("a chunk that is named");
                queue.hydrate_chunk(number, &raw(chunk)).expect("ours");
            }
        }
        queue
    }
}

fn contents(queue: &PersistentQueue<u64>) -> Vec<u64> {
    queue.iter().copied().collect()
}

#[test]
fn the_entry_is_absent_a_list_or_an_object_while_something_is_taken() {
    // T2.4, T6.1, T6.3, edge cases 15 and 17
    let (mut disk, mut queue) = (Disk::default(), PersistentQueue::declared());
    disk.commit(&mut queue);
    assert_eq!(disk.entry, None);
    queue.extend([1, 2, 3]);
    disk.commit(&mut queue);
    assert_eq!(disk.entry.as_deref(), Some("[1,2,3]"));
    assert_eq!(queue.take_now(2).unwrap(), [1, 2]);
    disk.commit(&mut queue);
    assert_eq!(
        disk.entry.as_deref(),
        Some(r#"{"taken":[1,2],"items":[3]}"#)
    );
    assert_eq!(queue.take_all(), [3]);
    disk.commit(&mut queue);
    assert_eq!(disk.entry.as_deref(), Some(r#"{"taken":[1,2,3]}"#));
    queue.untake(2).unwrap();
    disk.commit(&mut queue);
    assert_eq!(
        disk.entry.as_deref(),
        Some(r#"{"taken":[1],"items":[2,3]}"#)
    );
    queue.untake(1).unwrap();
    disk.commit(&mut queue);
    assert_eq!(disk.entry.as_deref(), Some("[1,2,3]"));
    queue.take_now(1).unwrap();
    disk.commit(&mut queue);
    // T6.5: after a crash what was taken is back, and the row says so.
    let mut opened = disk.open::<u64>();
    assert_eq!(contents(&opened), [1, 2, 3]);
    disk.commit(&mut opened);
    assert_eq!(disk.entry.as_deref(), Some("[1,2,3]"));
    // T6.4: the acknowledgement takes them away.
    queue.commit_takes();
    disk.commit(&mut queue);
    assert_eq!(disk.entry.as_deref(), Some("[2,3]"));
}

#[test]
fn what_a_queue_does_not_do_changes_nothing() {
    // T5.2, T6.1, T6.3
    let mut queue = PersistentQueue::declared();
    queue.extend([1_u64, 2, 3]);
    queue.commit();
    let too_few = |wanted, available| QueueError::TooFew { wanted, available };
    assert_eq!(queue.take_now(4), Err(too_few(4, 3)));
    assert_eq!(queue.untake(1), Err(too_few(1, 0)));
    assert_eq!(queue.take_now(0), Ok(Vec::new()));
    assert!(queue.changes().unwrap().entry.is_none());
    queue.take_now(1).unwrap();
    assert_eq!(queue.push_front(0), Err(QueueError::TakesPending));
    assert_eq!(queue.peek(), Some(&2));
    // Whole-value assignment leaves what is taken (T5.4).
    queue.assign([9]);
    let entry = queue.changes().unwrap().entry.unwrap().unwrap();
    assert_eq!(&*entry, r#"{"taken":[1],"items":[9]}"#);
}

#[test]
fn a_row_that_is_none_of_ours_is_refused() {
    // T2.7
    for text in [
        "1",
        "null",
        "\"a\"",
        r#"{"taken":1}"#,
        r#"{"other":[]}"#,
        r#"{"chunks":[2,2]}"#,
        r#"{"tail":[1]}"#,
        r#"["not a number"]"#,
    ] {
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let refused = PersistentQueue::<u64>::declared().hydrate(Some(&raw));
        assert!(refused.is_err(), "{text}");
    }
    for text in ["[]", "{}", r#"{"taken":[]}"#, r#"{"items":[1]}"#] {
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let opened = PersistentQueue::<u64>::declared().hydrate(Some(&raw));
        assert!(opened.is_ok(), "{text}");
    }
}

#[test]
fn keyed_appends_carry_their_key_and_come_once() {
    // T13.7, T13.8, edge case 20
    let keyed = |key| KeyedAdmission {
        key: Key::from(key),
        ignored: false,
    };
    let mut queue = PersistentQueue::declared();
    queue.push(Job { n: 0 });
    for (round, landed) in [(1, 2), (2, 0)] {
        queue.begin_keyed(&keyed(json!(null)));
        queue.extend([Job { n: 1 }, Job { n: 2 }]);
        let count = queue.end_keyed();
        assert_eq!((count.attempted, count.landed), (2, landed), "{round}");
    }
    let entry = queue.changes().unwrap().entry.unwrap().unwrap();
    assert_eq!(
        &*entry,
        r#"[{"n":0},{"n":1,"~admit":null},{"n":2,"~admit":null}]"#
    );
    queue.commit();
    // Taken entries count too.
    queue.take_now(2).unwrap();
    queue.begin_keyed(&keyed(json!(null)));
    queue.extend([Job { n: 1 }, Job { n: 2 }, Job { n: 3 }]);
    let count = queue.end_keyed();
    assert_eq!((count.attempted, count.landed), (3, 1));
    queue.begin_keyed(&keyed(json!(1)));
    queue.push_front(Job { n: 9 }).unwrap_err();
    queue.untake(2).unwrap();
    queue.push_front(Job { n: 9 }).unwrap();
    assert!(queue.end_keyed().broken.is_some());
}

#[test]
fn a_reserved_member_or_a_value_without_json_fails_the_segment() {
    // T2.3, T13.7
    let mut queue = PersistentQueue::declared();
    queue.push(json!({"~admit": 1}));
    queue.changes().unwrap_err();
    queue.rollback().unwrap();
    assert!(queue.is_empty());
    queue.begin_keyed(&KeyedAdmission {
        key: Key::from(json!(1)),
        ignored: false,
    });
    queue.push(json!([1]));
    queue.changes().unwrap_err();
    queue.rollback().unwrap();
    assert!(queue.is_empty() && queue.changes().unwrap().entry.is_none());
}

#[test]
fn the_item_in_hand_is_popped_wherever_it_stands_and_nothing_else_is() {
    // T10.3
    let mut queue = PersistentQueue::declared();
    queue.extend([1_u64, 2, 3]);
    assert_eq!(queue.source_next().unwrap(), Some(1));
    queue.push_front(0).unwrap();
    queue.source_ack();
    assert_eq!(contents(&queue), [0, 2, 3]);
    assert_eq!(queue.source_next().unwrap(), Some(0));
    queue.pop_front();
    queue.source_ack();
    assert_eq!(contents(&queue), [2, 3]);
}

#[test]
fn a_long_queue_writes_little_for_each_change() {
    let (mut disk, mut queue) = (Disk::default(), PersistentQueue::declared());
    let mut longest = 0;
    for n in 0..10_000_u64 {
        queue.push(n);
        disk.commit(&mut queue);
        longest = longest.max(disk.entry.as_ref().map_or(0, String::len));
    }
    for n in 0..10_000 {
        assert_eq!(queue.source_next().unwrap(), Some(n));
        queue.source_ack();
        disk.commit(&mut queue);
        longest = longest.max(disk.entry.as_ref().map_or(0, String::len));
    }
    assert!(longest < 6 * 3 * layout::CHUNK, "{longest}");
    assert_eq!(disk, Disk::default());
}

#[test]
fn what_came_back_to_a_long_queue_stays_with_what_follows() {
    // T2.4, T6.5: more entries than a row holds come back to the head, and the queue goes on from there.
    for came_back in [1, 63, 64, 65, 96, 97, 127, 128, 129, 300] {
        for more in [1, 2, 3, 33, 100] {
            let (mut disk, mut queue) = (Disk::default(), PersistentQueue::declared());
            queue.extend(0..came_back);
            queue.take_all();
            disk.commit(&mut queue);
            let mut queue = disk.open::<u64>();
            disk.commit(&mut queue);
            let end = came_back + more;
            queue.extend(came_back..end);
            for first in 0..end {
                disk.commit(&mut queue);
                assert_eq!(contents(&disk.open()), Vec::from_iter(first..end));
                assert_eq!(queue.pop_front(), Some(first));
            }
            disk.commit(&mut queue);
            assert_eq!(disk, Disk::default());
        }
    }
}

#[test]
fn a_chunk_that_comes_and_goes_within_a_segment_is_neither_written_nor_removed() {
    let mut queue = PersistentQueue::declared();
    queue.extend(0..10_000_u64);
    queue.take_all();
    queue.untake(10_000).unwrap();
    let changes = queue.changes().unwrap();
    assert!(changes.chunks.iter().all(|(_, text)| text.is_some()));
    assert_eq!(changes.chunks.len(), queue.layout.lens.len());
}

#[derive(Clone, Debug)]
enum Op {
    Push(u8),
    PushFront,
    PopFront(u8),
    PopBack,
    Remove(usize),
    Set(usize),
    Edit(usize),
    Assign(u16),
    Take(usize),
    TakeAll,
    Untake(usize),
    AckTakes,
    Commit,
    RollBack,
    /// Its first segment, before any change, may stand at once.
    Reopen(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u8>().prop_map(Op::Push),
        1 => Just(Op::PushFront),
        6 => any::<u8>().prop_map(Op::PopFront),
        1 => Just(Op::PopBack),
        2 => (0_usize..300).prop_map(Op::Remove),
        1 => (0_usize..300).prop_map(Op::Set),
        2 => (0_usize..300).prop_map(Op::Edit),
        1 => (0_u16..400).prop_map(Op::Assign),
        2 => (0_usize..200).prop_map(Op::Take),
        1 => Just(Op::TakeAll),
        2 => (0_usize..200).prop_map(Op::Untake),
        1 => Just(Op::AckTakes),
        6 => Just(Op::Commit),
        2 => Just(Op::RollBack),
        1 => any::<bool>().prop_map(Op::Reopen),
    ]
}

/// The same queue without any of it being durable.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    taken: VecDeque<u64>,
    items: VecDeque<u64>,
}

/// Does the same with a queue and with a plain one, and compares them after each step. `ours` is whether the row was
/// written here.
fn follow(
    ops: Vec<Op>,
    disk: &mut Disk,
    queue: &mut PersistentQueue<u64>,
    model: &mut Model,
    ours: bool,
) -> Result<(), TestCaseError> {
    let mut committed = model.clone();
    // Other values than a row may begin with.
    let mut next = 10;
    let mut fresh = || {
        next += 1;
        next
    };
    for op in ops {
        let pushed = matches!(op, Op::Push(_));
        match op {
            Op::Push(count) => {
                for _ in 0..=count / 4 {
                    let n = fresh();
                    queue.push(n);
                    model.items.push_back(n);
                }
            }
            Op::PushFront => {
                let n = fresh();
                if queue.push_front(n).is_ok() {
                    model.items.push_front(n);
                }
            }
            Op::PopFront(count) => {
                for _ in 0..=count / 4 {
                    prop_assert_eq!(queue.pop_front(), model.items.pop_front());
                }
            }
            Op::PopBack => prop_assert_eq!(queue.pop_back(), model.items.pop_back()),
            Op::Remove(index) => {
                let removed = queue.remove(index);
                prop_assert_eq!(removed, model.items.remove(index));
            }
            Op::Set(index) => {
                let n = fresh();
                if queue.set(index, n).is_some() {
                    model.items[index] = n;
                }
            }
            Op::Edit(index) => {
                let n = fresh();
                if queue.edit(index, |item| *item += n).is_some() {
                    model.items[index] += n;
                }
            }
            Op::Assign(count) => {
                let items: Vec<u64> = (0..count).map(|_| fresh()).collect();
                queue.assign(items.clone());
                model.items = items.into();
            }
            Op::Take(count) => {
                if let Ok(taken) = queue.take_now(count) {
                    for n in taken {
                        prop_assert_eq!(Some(n), model.items.pop_front());
                        model.taken.push_back(n);
                    }
                }
            }
            Op::TakeAll => {
                queue.take_all();
                model.taken.append(&mut model.items);
            }
            Op::Untake(count) => {
                if queue.untake(count).is_ok() {
                    for _ in 0..count {
                        let n = model.taken.pop_back().unwrap();
                        model.items.push_front(n);
                    }
                }
            }
            Op::AckTakes => {
                queue.commit_takes();
                model.taken.clear();
            }
            Op::Commit => {
                disk.commit(queue);
                committed = model.clone();
            }
            Op::RollBack => {
                queue.rollback().unwrap();
                *model = committed.clone();
            }
            Op::Reopen(commits) => {
                *queue = disk.open();
                if commits {
                    disk.commit(queue);
                }
                *model = committed.clone();
                let mut items = std::mem::take(&mut model.taken);
                items.append(&mut model.items);
                model.items = items;
                committed = model.clone();
            }
        }
        prop_assert_eq!(contents(queue), Vec::from(model.items.clone()));
        prop_assert_eq!(queue.taken(), model.taken.len());
        let layout = &queue.layout;
        prop_assert_eq!(layout.len(), queue.len());
        let whole = layout.lens.is_empty();
        let tidy = if whole {
            layout.tail == 0
        } else {
            layout.head > 0
        };
        // A row of others is laid out at its first change.
        prop_assert!(tidy || (!ours && !pushed), "{:?}", layout);
        if pushed {
            let (head, tail) = layout.bounds();
            prop_assert!(layout.head <= head && layout.tail <= tail, "{:?}", layout);
        }
    }
    disk.commit(queue);
    let named = queue.layout.lens.len();
    prop_assert_eq!(disk.chunks.len(), named, "no chunk is left behind");
    Ok(())
}

proptest! {
    /// Whatever is done, committed, taken back and opened again: the queue is what a plain one would be.
    #[test]
    fn a_queue_is_a_queue(ops in prop::collection::vec(op(), 1..120)) {
        let (mut disk, mut queue) = (Disk::default(), PersistentQueue::<u64>::declared());
        follow(ops, &mut disk, &mut queue, &mut Model::default(), true)?;
    }
}

#[test]
fn an_entry_is_the_same_with_a_key_and_without() {
    // T13.7: whatever its numbers are.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Wide {
        z: u128,
        a: f64,
    }
    let wide = Wide {
        z: u128::MAX,
        a: 0.1,
    };
    let (mut disk, mut queue) = (Disk::default(), PersistentQueue::declared());
    queue.begin_keyed(&KeyedAdmission {
        key: Key::from(json!({"b": [1]})),
        ignored: false,
    });
    queue.push(wide.clone());
    queue.end_keyed();
    disk.commit(&mut queue);
    let stored = r#"[{"a":0.1,"z":340282366920938463463374607431768211455,"~admit":{"b":[1]}}]"#;
    assert_eq!(disk.entry.as_deref(), Some(stored));
    let mut again = disk.open::<Wide>();
    assert_eq!(again.source_next().unwrap(), Some(wide));
}
