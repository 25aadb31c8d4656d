//! Stores that break the contract, each in one way (S7).

use pinned::durability::{Claim, Doc, RowOp, RowState};
use serde_json::{Map, Value};

/// One sabotaged store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// S7.1
    EpochNeverCompared,
    /// S7.2
    AnyWriterIsFence,
    /// S7.3
    ListSkipsFence,
    /// S7.4
    WritesForgotten,
    /// S7.5
    LogCutToFirst,
    /// S7.6
    TakenFeedDropped,
    /// S7.7
    StateNotStored,
    /// S7.8
    AttemptsNotStored,
    /// S7.9
    ItemsHidden,
    /// S7.10
    DocFrozen,
    /// S7.11
    MarkNeverStored,
    /// S7.12
    DeletesForgotten,
    /// S7.13: unmark dropped.
    UnmarkDropped,
    /// S7.13: batch applied without its last op.
    BatchLosesLast,
    /// S7.13: `~ignore` drop lost.
    IgnoreKept,
    /// `~ignore` is never stored.
    IgnoreNotStored,
    /// The tags of keyed admissions are not stored.
    TagsNotStored,
    /// The row of the instance's own fields is not stored.
    OwnRowForgotten,
    /// Writes are answered before they are durable, and a crash loses them.
    AnswersEarly,
}

/// How an operation meets the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Read,
    List,
}

impl Mutant {
    pub(super) const ALL: [Self; 19] = [
        Self::EpochNeverCompared,
        Self::AnyWriterIsFence,
        Self::ListSkipsFence,
        Self::WritesForgotten,
        Self::LogCutToFirst,
        Self::TakenFeedDropped,
        Self::StateNotStored,
        Self::AttemptsNotStored,
        Self::ItemsHidden,
        Self::DocFrozen,
        Self::MarkNeverStored,
        Self::DeletesForgotten,
        Self::UnmarkDropped,
        Self::BatchLosesLast,
        Self::IgnoreKept,
        Self::IgnoreNotStored,
        Self::TagsNotStored,
        Self::OwnRowForgotten,
        Self::AnswersEarly,
    ];

    /// The invariants of which one must be named.
    pub(super) fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::EpochNeverCompared | Self::AnyWriterIsFence | Self::ListSkipsFence => &["S5.27"],
            Self::WritesForgotten | Self::DocFrozen | Self::BatchLosesLast | Self::AnswersEarly => {
                &["S5.9"]
            }
            Self::LogCutToFirst => &["S5.4"],
            Self::TakenFeedDropped => &["S5.15"],
            Self::StateNotStored => &["S5.14"],
            Self::AttemptsNotStored => &["S5.13"],
            Self::ItemsHidden => &["S5.9", "S5.3"],
            Self::MarkNeverStored => &["S5.3"],
            Self::DeletesForgotten | Self::UnmarkDropped => &["S5.23"],
            Self::IgnoreKept => &["S5.24"],
            Self::IgnoreNotStored => &["S5.20"],
            Self::TagsNotStored => &["S5.21"],
            Self::OwnRowForgotten => &["D15.3"],
        }
    }

    /// Whether the claim meets the store's own fence; otherwise it passes, whatever its epoch.
    pub(super) fn fences(self, access: Access, claim: &Claim, fence: u64) -> bool {
        match self {
            Self::EpochNeverCompared => false,
            Self::AnyWriterIsFence => access != Access::Write && claim.epoch < fence,
            Self::ListSkipsFence => access != Access::List,
            _ => true,
        }
    }

    /// What becomes of a write over `old`; `None` when nothing does.
    pub(super) fn alter(self, old: Option<RowState>, op: RowOp) -> Option<RowOp> {
        let Some(RowState { mut marked, doc }) = op.state else {
            return (self != Self::DeletesForgotten).then_some(op);
        };
        let own = &*op.key.tray_ns == "~";
        if self == Self::WritesForgotten || (own && self == Self::OwnRowForgotten) {
            return None;
        }
        let mut map = doc.to_map();
        match self {
            Self::LogCutToFirst => {
                if let Some(Value::Array(log)) = map.get_mut("log") {
                    log.truncate(1);
                }
            }
            Self::TakenFeedDropped => {
                if let Some(Value::Object(feed)) = map.get_mut("feed") {
                    feed.remove("taken");
                }
            }
            Self::StateNotStored => drop(map.remove("~state")),
            Self::AttemptsNotStored => drop(map.remove("~attempts")),
            Self::DocFrozen => map = old.map(|old| old.doc.to_map()).unwrap_or_default(),
            Self::MarkNeverStored => marked = false,
            Self::UnmarkDropped => marked |= old.is_some_and(|old| old.marked),
            Self::IgnoreKept => keep_ignored(&mut map, old),
            Self::IgnoreNotStored => drop(map.remove("~ignore")),
            Self::TagsNotStored => untag(&mut map),
            _ => {}
        }
        Some(RowOp::set(op.key, marked, Doc::from(map)))
    }

    /// What becomes of a row that is read.
    pub(super) fn show(self, state: RowState) -> RowState {
        if self != Self::ItemsHidden {
            return state;
        }
        let mut map = state.doc.to_map();
        map.remove("queue");
        map.remove("feed");
        RowState {
            marked: state.marked,
            doc: Doc::from(map),
        }
    }
}

fn keep_ignored(map: &mut Map<String, Value>, old: Option<RowState>) {
    let old = old.and_then(|old| old.doc.to_map().remove("~ignore"));
    if let Some(old) = old {
        map.entry("~ignore").or_insert(old);
    }
}

fn untag(map: &mut Map<String, Value>) {
    let Some(queue) = map.get_mut("queue") else {
        return;
    };
    for part in ["taken", "items"] {
        untag_all(queue.get_mut(part));
    }
    untag_all(Some(queue));
}

fn untag_all(items: Option<&mut Value>) {
    for item in items.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(item) = item {
            item.remove("~admit");
        }
    }
}
