//! Who is told when (O5).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use pinned::Observable;
use pinned::observable::{Subscription, tree};
use serde_json::json;

use super::{Log, json, place, remove, replace};

/// Notes names in the order of the calls.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<&'static str>>>);

impl Calls {
    fn on(&self, observable: &Observable, name: &'static str) -> Subscription {
        let calls = self.0.clone();
        observable.subscribe(move |_| calls.lock().push(name))
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock())
    }
}

#[test]
fn subscribers_are_called_in_order_and_a_parent_at_the_point_of_mounting() {
    // O5.2, O7.2
    let (child, page, calls) = (json(json!(0)), json(json!([])), Calls::default());
    let _first = calls.on(&child, "first");
    let _outer = calls.on(&page, "page");
    page.cursor().push(&child).unwrap();
    let _last = calls.on(&child, "last");
    calls.take();
    child.set(json!(1)).unwrap();
    assert_eq!(calls.take(), ["first", "page", "last"]);
}

#[test]
fn a_subscription_ends_alone_and_when_it_is_dropped() {
    // O5.1, O5.5, O5.7
    let (page, calls) = (json(json!(0)), Calls::default());
    page.set(json!(1)).unwrap();
    let first = calls.on(&page, "once");
    let second = calls.on(&page, "twice");
    page.set(json!(2)).unwrap();
    drop(first);
    page.set(json!(3)).unwrap();
    second.forever();
    page.set(json!(4)).unwrap();
    assert_eq!(calls.take(), ["once", "twice", "twice", "twice"]);
}

#[test]
fn a_subscriber_changes_the_list_of_subscribers_for_later_ops_only() {
    // O5.3
    let (page, calls) = (json(json!(0)), Calls::default());
    let second = Arc::new(Mutex::new(None));
    let (weak, late, ended) = (page.downgrade(), calls.clone(), second.clone());
    page.subscribe(move |_| {
        drop(ended.lock().take());
        late.on(&weak.upgrade().unwrap(), "late").forever();
    })
    .forever();
    *second.lock() = Some(calls.on(&page, "second"));
    page.set(json!(1)).unwrap();
    assert_eq!(calls.take(), ["second"]);
    page.set(json!(2)).unwrap();
    assert_eq!(calls.take(), ["late"]);
}

#[test]
fn a_child_that_its_own_subscriber_frees_forwards_nothing_more() {
    // O5.4, O8.6
    let child = json(json!(0));
    let page = Observable::from_tree(json!([])).unwrap();
    let outer = page.downgrade();
    child
        .subscribe(move |_| {
            let _ = outer.upgrade().unwrap().cursor().take(0);
        })
        .forever();
    page.cursor().push(&child).unwrap();
    let (log, inner) = (Log::of(&page), Log::of(&child));
    assert!(catch_unwind(AssertUnwindSafe(|| child.set(json!(1)))).is_ok());
    assert_eq!(log.take(), [remove(place![0])]);
    assert_eq!(inner.take(), [replace(place![], 1)]);
    assert_eq!(page.snapshot(), json!([]));
    page.cursor().push(&child).unwrap();
}

#[test]
fn an_op_that_has_reached_the_parent_reaches_all_its_subscribers() {
    // O5.3, O5.4
    let child = json(json!(0));
    let page = Observable::from_tree(tree!([&child])).unwrap();
    let outer = page.downgrade();
    page.subscribe(move |op| {
        if op.path == place![0] && op.value.is_some() {
            outer.upgrade().unwrap().cursor().remove(0).unwrap();
        }
    })
    .forever();
    let log = Log::of(&page);
    child.set(json!(1)).unwrap();
    assert_eq!(log.take(), [replace(place![0], 1), remove(place![0])]);
}

#[test]
fn a_write_from_inside_comes_after_the_op_it_answers_for_everyone() {
    // O2.2, O5.3
    let page = json(json!(0));
    let (weak, own) = (page.downgrade(), Log::default());
    let seen = own.0.clone();
    page.subscribe(move |op| {
        seen.lock().push(op.clone());
        if op.value == Some(json!(1)) {
            let page = weak.upgrade().unwrap();
            page.set(json!(2)).unwrap();
            assert_eq!(
                seen.lock().len(),
                2,
                "delivered before the inner write returned"
            );
        }
    })
    .forever();
    let later = Log::of(&page);
    page.set(json!(1)).unwrap();
    let expected = [replace(place![], 1), replace(place![], 2)];
    assert_eq!(
        (own.take(), later.take()),
        (expected.to_vec(), expected.to_vec())
    );
}

#[test]
fn a_panic_of_a_subscriber_reaches_the_writer_after_the_others_have_had_the_op() {
    // O5.6
    let child = json(json!(0));
    let page = Observable::from_tree(tree!([&child])).unwrap();
    let panicking = child.subscribe(|_| panic!("out of ink"));
    let (inner, outer) = (Log::of(&child), Log::of(&page));
    let caught = catch_unwind(AssertUnwindSafe(|| page.at(0).set(json!(1))));
    assert!(
        caught.is_ok(),
        "the slot is the parent's, and the child free"
    );
    page.at(0).set(&child).unwrap();
    inner.take();
    outer.take();
    let caught = catch_unwind(AssertUnwindSafe(|| child.set(json!(2))));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"out of ink"));
    assert_eq!(inner.take(), [replace(place![], 2)]);
    assert_eq!(outer.take(), [replace(place![0], 2)]);
    assert_eq!(page.snapshot(), json!([2]));
    drop(panicking);
    child.set(json!(3)).unwrap();
    assert_eq!(outer.take(), [replace(place![0], 3)]);
}

#[test]
fn destructors_of_what_a_write_throws_away_may_use_the_tree() {
    struct Last(Observable);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.cursor().push("gone").unwrap();
        }
    }
    let log = json(json!([]));
    let page = json(json!({}));
    page.at("log").set(&log).unwrap();
    let child = json(json!(0));
    let last = Last(log.clone());
    child.subscribe(move |_| drop(last.0.snapshot())).forever();
    page.at("child").set(child).unwrap();
    page.cursor().remove("child").unwrap();
    assert_eq!(page.snapshot(), json!({ "log": ["gone"] }));
}
