//! Rows, stores and values that misbehave.

use super::*;

#[test]
fn numbers_of_chunks_stay_far_from_their_end() {
    // T2.7
    let (from, to) = (u64::MAX - 1, u64::MAX);
    let text = format!(r#"{{"items":[1],"chunks":[{from},{to}]}}"#);
    let raw = serde_json::value::RawValue::from_string(text).unwrap();
    PersistentQueue::<u64>::declared()
        .hydrate(Some(&raw))
        .unwrap_err();
}

/// Panics as it is dropped.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bomb(u64);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 == 13 && !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn an_assignment_whose_old_entries_panic_as_they_are_dropped_can_be_taken_back() {
    let (mut disk, mut queue) = (Disk::default(), PersistentQueue::declared());
    queue.extend([1, 13, 3].map(Bomb));
    disk.commit(&mut queue);
    let assign = std::panic::AssertUnwindSafe(|| queue.assign([Bomb(7)]));
    std::panic::catch_unwind(assign).expect_err("it panicked");
    queue.rollback().unwrap();
    assert_eq!(
        queue.iter().map(|bomb| bomb.0).collect::<Vec<_>>(),
        [1, 13, 3]
    );
    assert_eq!(queue.layout.len(), queue.len());
    std::mem::forget(queue);
}

/// What was taken, the head, the chunks and the tail of a row that was not written here.
fn foreign() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<Vec<u64>>, Vec<u64>)> {
    let list = |n| prop::collection::vec(0_u64..9, 0..n);
    (
        list(3),
        list(200),
        prop::collection::vec(list(200), 1..5),
        list(200),
    )
}

proptest! {
    /// Chunks of any length, and empty ends.
    #[test]
    fn a_row_of_any_lengths_is_a_queue((taken, head, chunks, tail) in foreign(), ops in prop::collection::vec(op(), 1..60)) {
        let text = |list: &Vec<u64>| serde_json::to_string(list).unwrap();
        let entry = format!(r#"{{"taken":{},"items":{},"chunks":[3,{}],"tail":{}}}"#, text(&taken), text(&head), 3 + chunks.len(), text(&tail));
        let mut disk = Disk { entry: Some(entry), chunks: (3..).zip(chunks.iter().map(text)).collect() };
        let mut queue = disk.open::<u64>();
        let all: Vec<u64> = taken.iter().chain(&head).chain(chunks.iter().flatten()).chain(&tail).copied().collect();
        prop_assert_eq!(contents(&queue), all.clone());
        let mut model = Model { taken: VecDeque::new(), items: all.into() };
        disk.commit(&mut queue);
        follow(ops, &mut disk, &mut queue, &mut model, false)?;
        let mut all = Vec::from(model.taken.clone());
        all.extend(model.items.iter());
        prop_assert_eq!(contents(&disk.open()), all);
    }

    /// A store without batches, torn after any write: what is read is the queue before or after the segment.
    #[test]
    fn a_segment_that_is_torn_is_none_or_whole(ops in prop::collection::vec(op(), 1..60), at in any::<prop::sample::Index>()) {
        let (mut disk, mut queue) = (Disk::default(), PersistentQueue::<u64>::declared());
        let mut next = 0;
        let mut fresh = || { next += 1; next };
        let mut before: Vec<u64> = vec![];
        for op in ops {
            match op {
                Op::Push(count) => for _ in 0..=count / 4 { queue.push(fresh()); },
                Op::PushFront => { let _ = queue.push_front(fresh()); }
                Op::PopFront(count) => for _ in 0..=count / 4 { queue.pop_front(); },
                Op::PopBack => { queue.pop_back(); }
                Op::Remove(index) => { queue.remove(index); }
                Op::Set(index) => { queue.set(index, fresh()); }
                Op::Edit(index) => { let n = fresh(); queue.edit(index, |item| *item = n); }
                Op::Assign(count) => { let items: Vec<u64> = (0..count).map(|_| fresh()).collect(); queue.assign(items); }
                Op::Take(count) => { let _ = queue.take_now(count); }
                Op::TakeAll => { queue.take_all(); }
                Op::Untake(count) => { let _ = queue.untake(count); }
                Op::AckTakes => queue.commit_takes(),
                Op::RollBack => { queue.rollback().unwrap(); }
                Op::Commit | Op::Reopen(_) => {
                    let mut after: Vec<u64> = queue.taken.iter().map(|held| held.read().unwrap()).collect();
                    after.extend(contents(&queue));
                    let changes = queue.changes().unwrap();
                    queue.commit();
                    // As `stage_rows` orders them.
                    let mut writes: Vec<(Option<u64>, Option<String>)> = vec![];
                    let own = |text: Option<crate::tray::entries::EntryText>| text.map(|text| text.to_string());
                    let (mut written, mut dropped) = (vec![], vec![]);
                    for (number, text) in changes.chunks {
                        match text { Some(_) => written.push((Some(number), own(text))), None => dropped.push((Some(number), None)) }
                    }
                    writes.extend(written);
                    if let Some(entry) = changes.entry { writes.push((None, own(entry))); }
                    writes.extend(dropped);
                    let stop = if matches!(op, Op::Reopen(_)) { at.index(writes.len() + 1) } else { writes.len() };
                    for (number, text) in writes.into_iter().take(stop) {
                        match (number, text) {
                            (None, text) => disk.entry = text,
                            (Some(number), Some(text)) => { disk.chunks.insert(number, text); }
                            (Some(number), None) => { disk.chunks.remove(&number); }
                        }
                    }
                    if matches!(op, Op::Reopen(_)) {
                        queue = disk.open();
                        let got = contents(&queue);
                        prop_assert!(got == before || got == after, "{got:?} is neither {before:?} nor {after:?}");
                        disk.commit(&mut queue);
                        before = got;
                    } else {
                        before = after;
                    }
                }
            }
        }
    }
}
