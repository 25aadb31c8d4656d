//! Observables for reading only.

use pinned::Observable;
use pinned::observable::{ObservableError, tree};
use serde_json::json;

use super::{Log, add, json, place, replace};

#[test]
fn nothing_is_written_through_a_view_on_any_path() {
    // T5.7
    let read_only = |result: Result<(), ObservableError>| {
        assert!(
            matches!(result, Err(ObservableError::ReadOnly { .. })),
            "{result:?}"
        );
    };
    let nested = json(json!({ "n": 0 }));
    let queue = Observable::from_tree(tree!([{ "n": 0 }, &nested])).unwrap();
    let page = Observable::from_tree(tree!({ "queue": queue.view() })).unwrap();
    let log = Log::of(&page);
    let before = queue.snapshot();
    for at in [queue.view().cursor(), page.at("queue")] {
        read_only(at.push(1));
        read_only(at.insert(0, 1));
        read_only(at.extend([1]));
        read_only(at.at(0).set(1));
        read_only(at.at(0).at("n").set(1));
        read_only(at.at(0).merge(json!({ "n": 1 })));
        read_only(at.at(0).set_default("m", 1).map(drop));
        read_only(at.at(1).at("n").set(1));
        read_only(at.clear());
        read_only(at.pop().map(drop));
        read_only(at.remove(0).map(drop));
        read_only(at.remove_value(json!({ "n": 0 })).map(drop));
        read_only(at.at(0).at("n").push_str("x"));
    }
    read_only(queue.view().cursor().set(1));
    assert_eq!((queue.snapshot(), log.take()), (before, vec![]));
}

#[test]
fn what_the_owner_writes_shows_through_the_view() {
    // T5.6, O4.2
    let queue = json(json!([]));
    let page = Observable::from_tree(tree!({ "queue": queue.view() })).unwrap();
    let (outer, view) = (Log::of(&page), Log::of(&queue.view()));
    queue.cursor().push("a").unwrap();
    assert_eq!(outer.take(), [add(place!["queue", 0], "a")]);
    assert_eq!(view.take(), [add(place![0], "a")]);
    assert_eq!(page.at("queue").at(0).get().unwrap(), "a");
    assert_eq!(queue.view().get().unwrap(), json!(["a"]));
}

#[test]
fn the_slot_of_a_view_is_the_parents() {
    // O4.4
    let queue = json(json!([]));
    let page = Observable::from_tree(tree!({ "queue": queue.view() })).unwrap();
    let log = Log::of(&page);
    page.at("queue").set("closed").unwrap();
    queue.cursor().push(1).unwrap();
    assert_eq!(log.take(), [replace(place!["queue"], "closed")]);
    assert!(queue.is_same(&queue.view()));
    assert!(!queue.is_same(&page));
}

#[test]
fn a_view_in_a_field_is_mounted_as_a_view() {
    #[derive(serde::Serialize)]
    struct Page {
        queue: pinned::observable::ObservableView,
    }
    let queue = json(json!([]));
    let page = Observable::new(Page {
        queue: queue.view(),
    })
    .unwrap();
    queue.cursor().push(1).unwrap();
    assert_eq!(page.snapshot(), json!({ "queue": [1] }));
    assert!(page.at("queue").push(2).is_err());
}
