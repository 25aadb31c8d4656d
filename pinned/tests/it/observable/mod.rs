//! Observable values (`spec/observable.md`), item by item.

mod apply;
mod mounts;
mod ops;
mod order;
mod replay;
mod threads;
mod values;
mod views;
mod watching;

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::Observable;
use pinned::observable::{ObservableView, Op, Segment};
use serde_json::Value;

/// The ops a subscriber has had.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Op>>>);

impl Log {
    fn of<T>(observable: &ObservableView<T>) -> Self {
        let log = Self::default();
        let ops = log.0.clone();
        observable
            .subscribe(move |op| ops.lock().push(op.clone()))
            .forever();
        log
    }

    /// The ops since the last look.
    fn take(&self) -> Vec<Op> {
        std::mem::take(&mut self.0.lock())
    }
}

fn json(value: Value) -> Observable {
    Observable::new(value).unwrap()
}

/// `place!["todos", 0]`
macro_rules! place {
    ($($segment:expr),* $(,)?) => {
        Vec::<pinned::observable::Segment>::from([$(pinned::observable::Segment::from($segment)),*])
    };
}
use place;

fn replace(path: Vec<Segment>, value: impl Into<Value>) -> Op {
    Op::replace(path, value)
}

fn add(path: Vec<Segment>, value: impl Into<Value>) -> Op {
    Op::add(path, value)
}

fn remove(path: Vec<Segment>) -> Op {
    Op::remove(path)
}
