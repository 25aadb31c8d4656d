//! Trees under real threads.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use parking_lot::Mutex;
use pinned::Observable;
use pinned::observable::{Change, ObservableError, tree};
use serde_json::json;

use super::{Log, add, json, place};

const ROUNDS: usize = 300;

#[test]
fn threads_that_mount_in_opposite_directions_end_and_never_make_a_cycle() {
    // O4.8, O4.9
    for _ in 0..ROUNDS {
        let (a, b) = (json(json!([])), json(json!([])));
        let gate = Barrier::new(2);
        let mount = |outer: &Observable, inner: &Observable| {
            gate.wait();
            outer.cursor().push(inner)
        };
        let results = thread::scope(|scope| {
            let one = scope.spawn(|| mount(&a, &b));
            let other = scope.spawn(|| mount(&b, &a));
            [one.join().unwrap(), other.join().unwrap()]
        });
        let refused: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert!(
            matches!(refused[..], [ObservableError::Cycle { .. }]),
            "{refused:?}"
        );
    }
}

#[test]
fn subscribers_that_write_into_each_others_trees_do_not_wait_in_a_circle() {
    // O2.2, O5.3
    let (a, b) = (
        json(json!({ "n": 0, "from": [] })),
        json(json!({ "n": 0, "from": [] })),
    );
    for (from, to) in [(&a, &b), (&b, &a)] {
        let to = to.downgrade();
        from.subscribe(move |op| {
            if op.path == place!["n"] {
                let value = op.value.clone().unwrap();
                to.upgrade().unwrap().at("from").push(value).unwrap();
            }
        })
        .forever();
    }
    let (log_a, log_b) = (Log::of(&a), Log::of(&b));
    thread::scope(|scope| {
        for page in [&a, &b] {
            scope.spawn(|| {
                for n in 0..ROUNDS {
                    page.at("n").set(n).unwrap();
                }
            });
        }
    });
    // Nothing was lost or came twice, and each log rebuilds its tree.
    for (page, log) in [(&a, log_a), (&b, log_b)] {
        let ops = log.take();
        assert_eq!(ops.len(), 2 * ROUNDS);
        let mut mirror = json!({ "n": 0, "from": [] });
        ops.iter().for_each(|op| op.apply(&mut mirror).unwrap());
        assert_eq!(mirror, page.snapshot());
    }
}

#[test]
fn subscribers_that_mount_and_free_across_trees_do_not_block() {
    // O5.4, O8.6
    let (a, b, ball) = (json(json!([])), json(json!([])), json(json!(0)));
    for (from, to) in [(&a, &b), (&b, &a)] {
        let (from_weak, to, ball) = (from.downgrade(), to.downgrade(), ball.downgrade());
        from.subscribe(move |op| {
            if op.value.as_ref().is_some_and(serde_json::Value::is_number) {
                let _ = from_weak.upgrade().unwrap().cursor().take(0);
                let _ = to
                    .upgrade()
                    .unwrap()
                    .cursor()
                    .push(tree!([ball.upgrade().unwrap(), 0]));
                let _ = to.upgrade().unwrap().cursor().take(0);
            }
        })
        .forever();
    }
    thread::scope(|scope| {
        for page in [&a, &b] {
            scope.spawn(|| {
                for n in 0..ROUNDS / 3 {
                    let _ = page.cursor().insert(0, n);
                    let _ = page.cursor().clear();
                }
            });
        }
    });
    a.cursor().clear().unwrap();
    b.cursor().clear().unwrap();
    a.set(json!({})).unwrap();
    a.at("ball").set(&ball).unwrap();
}

#[test]
fn all_subscribers_of_a_tree_see_one_order_that_rebuilds_it() {
    // O2.2
    let children: Vec<_> = (0..3).map(|_| json(json!([]))).collect();
    let page = Observable::from_tree(tree!({ "children": children.clone(), "list": [] })).unwrap();
    let start = page.snapshot();
    let (first, second) = (Log::of(&page), Log::of(&page));
    thread::scope(|scope| {
        for (n, child) in children.iter().enumerate() {
            let page = &page;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    child.cursor().insert(0, round).unwrap();
                    page.at("list").insert(n, json!([n, round])).unwrap();
                }
            });
        }
    });
    let (first, second) = (first.take(), second.take());
    assert_eq!(first, second);
    let mut mirror = start;
    first.iter().for_each(|op| op.apply(&mut mirror).unwrap());
    assert_eq!(mirror, page.snapshot());
}

#[test]
fn a_write_returns_after_its_op_was_delivered_though_another_thread_is_delivering() {
    // O2.2
    let page = json(json!([]));
    let (entered, inside) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    page.subscribe(move |op| {
        if op.value == Some(json!("slow")) {
            entered.send(()).unwrap();
            gate.lock().recv().unwrap();
        }
    })
    .forever();
    let log = Log::of(&page);
    thread::scope(|scope| {
        scope.spawn(|| page.cursor().push("slow").unwrap());
        inside.recv().unwrap();
        // Reads are not held up by a subscriber that is slow.
        assert_eq!(page.snapshot(), json!(["slow"]));
        let quick = scope.spawn(|| {
            page.cursor().push("quick").unwrap();
            log.take()
        });
        release.send(()).unwrap();
        let seen = quick.join().unwrap();
        assert_eq!(seen, [add(place![0], "slow"), add(place![1], "quick")]);
    });
}

/// Calls `act` in a subscriber of `page` once `"go"` is written to it, after it has said so and been let on.
fn stop_inside(
    page: &Observable,
    act: impl Fn() + Send + Sync + 'static,
) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (entered, inside) = mpsc::channel();
    let (release, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    page.subscribe(move |op| {
        if op.value == Some(json!("go")) {
            entered.send(()).unwrap();
            gate.lock().recv().unwrap();
            act();
        }
    })
    .forever();
    (inside, release)
}

#[test]
fn what_a_subscriber_writes_to_a_tree_in_delivery_elsewhere_is_left_to_that_thread() {
    // O2.2
    let (a, b) = (json(json!([])), json(json!([])));
    let (inside_a, release_a) = stop_inside(&a, || {});
    let to = a.downgrade();
    let (inside_b, release_b) = stop_inside(&b, move || {
        to.upgrade().unwrap().cursor().push("from b").unwrap();
    });
    let log = Log::of(&a);
    thread::scope(|scope| {
        let slow = scope.spawn(|| a.cursor().push("go").unwrap());
        inside_a.recv().unwrap();
        let other = scope.spawn(|| b.cursor().push("go").unwrap());
        inside_b.recv().unwrap();
        release_b.send(()).unwrap();
        // It ends although the subscriber of `a` does not.
        other.join().unwrap();
        assert_eq!(a.snapshot(), json!(["go", "from b"]));
        assert_eq!(log.take(), []);
        release_a.send(()).unwrap();
        slow.join().unwrap();
    });
    assert_eq!(log.take(), [add(place![0], "go"), add(place![1], "from b")]);
}

#[test]
fn trees_that_are_united_while_both_deliver_go_on_in_one_order() {
    // O2.2, O4.1
    let (a, b) = (json(json!([])), json(json!([])));
    let (inside_a, release_a) = stop_inside(&a, || {});
    let (to, child) = (a.downgrade(), b.downgrade());
    let (inside_b, release_b) = stop_inside(&b, move || {
        let child = child.upgrade().unwrap();
        to.upgrade().unwrap().cursor().push(&child).unwrap();
        child.cursor().push("mounted").unwrap();
    });
    let (log_a, log_b) = (Log::of(&a), Log::of(&b));
    thread::scope(|scope| {
        let slow = scope.spawn(|| a.cursor().push("go").unwrap());
        inside_a.recv().unwrap();
        let other = scope.spawn(|| b.cursor().push("go").unwrap());
        inside_b.recv().unwrap();
        release_b.send(()).unwrap();
        while a.at(1).len().unwrap_or(0) < 2 {
            thread::yield_now();
        }
        release_a.send(()).unwrap();
        slow.join().unwrap();
        other.join().unwrap();
    });
    assert_eq!(
        log_a.take(),
        [
            add(place![0], "go"),
            add(place![1], json!(["go"])),
            add(place![1, 1], "mounted"),
        ]
    );
    assert_eq!(
        log_b.take(),
        [add(place![0], "go"), add(place![1], "mounted")]
    );
}

#[test]
fn watchers_that_start_while_others_write_miss_nothing_and_see_nothing_twice() {
    let page = Arc::new(json(json!([])));
    thread::scope(|scope| {
        let writer = scope.spawn(|| (0..ROUNDS).for_each(|n| page.cursor().insert(0, n).unwrap()));
        while !writer.is_finished() {
            let (mut mirror, mut changes) = page.watch(8 * ROUNDS);
            let end = page.snapshot();
            while mirror.as_array().map(Vec::len) < end.as_array().map(Vec::len) {
                match futures_util::FutureExt::now_or_never(changes.next()) {
                    Some(Some(Change::Op(op))) => op.apply(&mut mirror).unwrap(),
                    Some(other) => panic!("{other:?}"),
                    None => thread::yield_now(),
                }
            }
            assert_eq!(mirror, end);
        }
    });
}
