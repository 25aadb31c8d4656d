//! What each write emits (O2, O3).

use pinned::observable::ObservableError;
use serde_json::json;

use super::{Log, add, json, place, remove, replace};

#[test]
fn five_writes_are_five_ops_with_exact_paths() {
    // O8.1, O2.1, O2.4
    let page = json(json!({ "status": "new", "items": [], "a": { "b": 0 } }));
    let log = Log::of(&page);
    page.at("status").set("ready").unwrap();
    page.at("items").push(1).unwrap();
    page.at("a").at("b").set(1).unwrap();
    page.at("a").at("c").set(json!([true])).unwrap();
    assert_eq!(page.at("items").pop().unwrap(), 1);
    assert_eq!(
        log.take(),
        [
            replace(place!["status"], "ready"),
            add(place!["items", 0], 1),
            replace(place!["a", "b"], 1),
            // O2.8
            replace(place!["a", "c"], json!([true])),
            remove(place!["items", 0]),
        ]
    );
    assert_eq!(
        page.snapshot(),
        json!({ "status": "ready", "items": [], "a": { "b": 1, "c": [true] } })
    );
}

#[test]
fn every_list_write_has_its_op() {
    // O2.4, O3.4, O3.7, O3.8
    let list = json(json!(["a"]));
    let log = Log::of(&list);
    let at = list.cursor();
    at.insert(0, "x").unwrap();
    at.insert(99, "z").unwrap();
    at.at(1).set("b").unwrap();
    at.extend(["p", "q"]).unwrap();
    assert_eq!(at.remove_value("b").unwrap(), 1);
    assert_eq!(at.remove(0).unwrap(), "x");
    assert_eq!(at.pop().unwrap(), "q");
    at.clear().unwrap();
    assert_eq!(
        log.take(),
        [
            add(place![0], "x"),
            add(place![2], "z"),
            replace(place![1], "b"),
            replace(place![], json!(["x", "b", "z", "p", "q"])),
            remove(place![1]),
            remove(place![0]),
            remove(place![2]),
            replace(place![], json!([])),
        ]
    );
}

#[test]
fn every_object_write_has_its_op() {
    // O2.4, O3.7
    let object = json(json!({ "a": 1 }));
    let log = Log::of(&object);
    let at = object.cursor();
    at.merge(json!({ "b": 2, "a": 3 })).unwrap();
    assert_eq!(at.set_default("c", "new").unwrap(), "new");
    assert_eq!(at.remove("b").unwrap(), 2);
    assert_eq!(at.take("a").unwrap(), Some(json!(3)));
    at.clear().unwrap();
    object.set(json!(null)).unwrap();
    assert_eq!(
        log.take(),
        [
            replace(place![], json!({ "a": 3, "b": 2 })),
            replace(place!["c"], "new"),
            remove(place!["b"]),
            remove(place!["a"]),
            replace(place![], json!({})),
            replace(place![], json!(null)),
        ]
    );
}

#[test]
fn writes_that_change_no_text_and_no_key_are_silent() {
    // O2.5
    let page = json(json!({ "text": "same", "list": ["same"] }));
    let log = Log::of(&page);
    page.at("text").set("same").unwrap();
    page.at("list").at(0).set("same").unwrap();
    page.at("text").push_str("").unwrap();
    assert_eq!(page.cursor().set_default("text", 1).unwrap(), "same");
    assert_eq!(page.cursor().take("missing").unwrap(), None);
    assert_eq!(log.take(), []);
}

#[test]
fn other_equal_writes_do_emit() {
    // O2.6, O2.7
    let page = json(json!({ "n": 1, "b": true, "l": [], "o": {} }));
    let log = Log::of(&page);
    page.at("n").set(1).unwrap();
    page.at("b").set(true).unwrap();
    page.at("l").set(json!([])).unwrap();
    page.at("l").extend([0; 0]).unwrap();
    page.at("l").clear().unwrap();
    page.at("o").merge(json!({})).unwrap();
    page.set(page.snapshot()).unwrap();
    assert_eq!(
        log.take(),
        [
            replace(place!["n"], 1),
            replace(place!["b"], true),
            replace(place!["l"], json!([])),
            replace(place!["l"], json!([])),
            replace(place!["l"], json!([])),
            replace(place!["o"], json!({})),
            replace(place![], page.snapshot()),
        ]
    );
    let text = json(json!("same"));
    let log = Log::of(&text);
    text.set(json!("same")).unwrap();
    assert_eq!(log.take(), [replace(place![], "same")]);
}

#[test]
fn appended_text_is_sent_alone_at_an_offset_in_scalar_values() {
    // O2.9, O2.10, O3.10
    let page = json(json!({ "text": "a🦀" }));
    let log = Log::of(&page);
    page.at("text").push_str("é!").unwrap();
    page.at("text").set("a🦀é!?").unwrap();
    assert_eq!(
        log.take(),
        [
            add(place!["text", 2], "é!"),
            replace(place!["text"], "a🦀é!?")
        ]
    );
    for refused in [page.cursor(), page.at("missing"), page.at("text").at(0)] {
        assert!(refused.push_str("x").is_err());
        assert!(refused.push_str("").is_err());
    }
    assert_eq!(log.take(), []);
}

#[test]
fn a_value_in_an_op_is_a_snapshot() {
    // O2.3
    let page = json(json!({ "list": [] }));
    let log = Log::of(&page);
    page.at("list").push(json!({ "n": 1 })).unwrap();
    page.at("list").at(0).at("n").set(2).unwrap();
    assert_eq!(log.take()[0], add(place!["list", 0], json!({ "n": 1 })));
}

#[test]
fn the_tree_has_changed_and_the_call_not_returned_when_the_op_arrives() {
    // O2.2
    let page = json(json!(0));
    let seen = Log::default();
    let (weak, ops) = (page.downgrade(), seen.0.clone());
    page.subscribe(move |op| {
        let now = weak.upgrade().unwrap().snapshot();
        assert_eq!(op.value.as_ref(), Some(&now));
        ops.lock().push(op.clone());
    })
    .forever();
    page.set(json!(1)).unwrap();
    assert_eq!(seen.take(), [replace(place![], 1)]);
}

#[test]
fn a_cursor_follows_what_sits_at_its_path() {
    // O3.1, O3.2
    let page = json(json!({ "list": [1] }));
    let first = page.at("list").at(0);
    page.at("list").insert(0, "before").unwrap();
    assert_eq!(first.get().unwrap(), "before");
    page.at("list").clear().unwrap();
    assert!(!first.exists());
    assert!(matches!(
        first.get(),
        Err(ObservableError::OutOfRange { len: 0, .. })
    ));
    page.set(json!({ "list": { "x": 1 } })).unwrap();
    assert!(matches!(first.get(), Err(ObservableError::Type { .. })));
}

#[test]
fn reads_answer_for_what_is_there() {
    // O3.8, O3.9
    let page = json(json!({ "list": [1, "two", { "n": 3 }], "text": "äb" }));
    let list = page.at("list");
    assert_eq!(list.len().unwrap(), 3);
    assert_eq!(page.at("text").len().unwrap(), 2);
    assert!(list.contains(1.0).unwrap());
    assert!(!list.contains(true).unwrap());
    assert!(list.contains(json!({ "n": 3 })).unwrap());
    assert_eq!(list.index_of("two").unwrap(), 1);
    assert!(matches!(
        list.index_of("x"),
        Err(ObservableError::NotFound { .. })
    ));
    assert!(page.cursor().contains("text").unwrap());
    assert!(!page.cursor().contains("äb").unwrap());
    assert!(!page.cursor().contains(1).unwrap());
    assert_eq!(page.cursor().keys().unwrap(), ["list", "text"]);
    assert!(list.keys().is_err());
    assert!(page.at("text").contains("ä").is_err());
    assert!(page.at("list").at(0).len().is_err());
}

#[test]
fn an_error_names_the_place_however_deep() {
    let page = json(json!({ "list": [{ "text": "x" }] }));
    let text = page.at("list").at(0).at("text");
    for error in [
        text.push(1).unwrap_err(),
        text.keys().unwrap_err(),
        text.merge(json!({})).unwrap_err(),
        text.clear().unwrap_err(),
        text.set(u64::MAX).unwrap_err(),
    ] {
        assert_eq!(error.path(), place!["list", 0, "text"], "{error}");
    }
    assert_eq!(
        text.at(0).get().unwrap_err().to_string(),
        "$.list[0].text: expected a list, found a string"
    );
}
