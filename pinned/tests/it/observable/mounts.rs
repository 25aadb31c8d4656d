//! Observables inside observables (O4).

use pinned::Observable;
use pinned::observable::{ObservableError, tree};
use serde_json::json;

use super::{Log, add, json, place, remove, replace};

#[test]
fn a_mounted_child_reports_under_its_place_until_it_is_taken_out() {
    // O8.2, O4.1, O4.2, O4.7
    let (list, child) = (json(json!([])), json(json!({ "n": 0 })));
    let (outer, inner) = (Log::of(&list), Log::of(&child));
    list.cursor().push(&child).unwrap();
    child.at("n").set(1).unwrap();
    assert_eq!(list.cursor().pop().unwrap(), json!({ "n": 1 }));
    child.at("n").set(2).unwrap();
    assert_eq!(
        outer.take(),
        [
            add(place![0], json!({ "n": 0 })),
            replace(place![0, "n"], 1),
            remove(place![0]),
        ]
    );
    assert_eq!(
        inner.take(),
        [replace(place!["n"], 1), replace(place!["n"], 2)]
    );

    list.cursor().push(&child).unwrap();
    child.at("n").set(3).unwrap();
    assert_eq!(
        outer.take(),
        [
            add(place![0], json!({ "n": 2 })),
            replace(place![0, "n"], 3)
        ]
    );
    assert_eq!(list.snapshot(), json!([{ "n": 3 }]));
}

#[test]
fn splices_move_the_mounts_behind_them() {
    // O8.3, O4.6
    let (a, b) = (json(json!("a")), json(json!({ "b": 0 })));
    let list = Observable::from_tree(tree!([&a, { "deep": [&b] }])).unwrap();
    let log = Log::of(&list);
    list.cursor().pop().unwrap();
    list.cursor().push(tree!({ "deep": [0, &b] })).unwrap();
    list.cursor().remove(0).unwrap();
    log.take();
    b.at("b").set(1).unwrap();
    list.cursor().insert(0, "front").unwrap();
    b.at("b").set(2).unwrap();
    list.at(1).at("deep").remove(0).unwrap();
    b.at("b").set(3).unwrap();
    a.set(json!("elsewhere")).unwrap();
    assert_eq!(
        log.take(),
        [
            replace(place![0, "deep", 1, "b"], 1),
            add(place![0], "front"),
            replace(place![1, "deep", 1, "b"], 2),
            remove(place![1, "deep", 0]),
            replace(place![1, "deep", 0, "b"], 3),
        ]
    );
}

#[test]
fn mounting_works_on_every_way_in() {
    // O4.1
    let children: Vec<_> = (0..7).map(|n| json(json!({ "n": n }))).collect();
    let page = Observable::from_tree(tree!({ "list": [], "at": &children[0] })).unwrap();
    page.at("key").set(&children[1]).unwrap();
    page.at("list").push(tree!([&children[2]])).unwrap();
    page.at("list").insert(0, &children[3]).unwrap();
    page.at("list").extend([&children[4]]).unwrap();
    page.cursor()
        .merge(tree!({ "merged": { "deep": &children[5] } }))
        .unwrap();
    page.cursor().set_default("default", &children[6]).unwrap();
    let log = Log::of(&page);
    for child in &children {
        child.at("n").set("x").unwrap();
    }
    let paths: Vec<_> = log.take().into_iter().map(|op| op.path).collect();
    assert_eq!(
        paths,
        [
            place!["at", "n"],
            place!["key", "n"],
            place!["list", 1, 0, "n"],
            place!["list", 0, "n"],
            place!["list", 2, "n"],
            place!["merged", "deep", "n"],
            place!["default", "n"],
        ]
    );
}

#[test]
fn ops_pass_through_any_number_of_levels() {
    // O4.2, O4.5
    let leaf = json(json!(0));
    let mut outermost = Observable::from_tree(tree!([&leaf])).unwrap();
    for _ in 0..20 {
        outermost = Observable::from_tree(tree!({ "in": outermost })).unwrap();
    }
    let log = Log::of(&outermost);
    leaf.set(json!(1)).unwrap();
    let op = &log.take()[0];
    assert_eq!(op.path.len(), 21);
    assert_eq!(op.value, Some(json!(1)));
    let mut mirror = json!(null);
    replace(place![], outermost.snapshot())
        .apply(&mut mirror)
        .unwrap();
    assert_eq!(
        mirror.pointer(&format!("{}/0", "/in".repeat(20))),
        Some(&json!(1))
    );
}

#[test]
fn the_deepest_owner_makes_a_write_that_leads_into_it() {
    // O4.3
    let child = json(json!({ "list": [] }));
    let page = Observable::from_tree(tree!({ "child": &child })).unwrap();
    let (outer, inner) = (Log::of(&page), Log::of(&child));
    page.at("child").at("list").push(1).unwrap();
    page.at("child").at("text").set("a").unwrap();
    page.at("child").at("text").push_str("b").unwrap();
    page.at("child").clear().unwrap();
    let expected = [
        add(place!["list", 0], 1),
        replace(place!["text"], "a"),
        add(place!["text", 1], "b"),
        replace(place![], json!({})),
    ];
    assert_eq!(inner.take(), expected);
    let prefixed = expected.map(|mut op| {
        op.path.insert(0, "child".into());
        op
    });
    assert_eq!(outer.take(), prefixed);
}

#[test]
fn assigning_the_slot_is_the_parents_write() {
    // O4.4
    let child = json(json!("kept"));
    let page = Observable::from_tree(tree!({ "child": &child })).unwrap();
    let (outer, inner) = (Log::of(&page), Log::of(&child));
    page.at("child").set("kept").unwrap();
    child.set(json!("alone")).unwrap();
    assert_eq!(outer.take(), [replace(place!["child"], "kept")]);
    assert_eq!(inner.take(), [replace(place![], "alone")]);
    assert_eq!(page.snapshot(), json!({ "child": "kept" }));
}

#[test]
fn whatever_takes_a_child_out_sets_it_free() {
    // O4.7
    let child = json(json!(0));
    let page = json(json!({}));
    let free: [&dyn Fn(); 7] = [
        &|| page.at("list").clear().unwrap(),
        &|| page.at("list").set(1).unwrap(),
        &|| page.cursor().set(json!({})).unwrap(),
        &|| page.cursor().clear().unwrap(),
        &|| drop(page.cursor().remove("list").unwrap()),
        &|| drop(page.at("list").at(0).at("deep").remove(0).unwrap()),
        &|| page.cursor().merge(json!({ "list": 0 })).unwrap(),
    ];
    let log = Log::of(&page);
    for free in free {
        page.at("list").set(tree!([{ "deep": [&child] }])).unwrap();
        child.set(json!(1)).unwrap();
        free();
        log.take();
        child.set(json!(2)).unwrap();
        assert_eq!(log.take(), []);
    }
}

#[test]
fn an_observable_has_one_place_at_a_time() {
    // O4.8
    let mounted = |result: Result<(), ObservableError>| {
        assert!(
            matches!(result, Err(ObservableError::Mounted { .. })),
            "{result:?}"
        );
    };
    let child = json(json!(0));
    let page = Observable::from_tree(tree!({ "a": &child, "b": 0, "list": [] })).unwrap();
    let other = json(json!([]));
    let log = Log::of(&page);
    mounted(other.cursor().push(&child));
    mounted(page.at("b").set(&child));
    mounted(page.at("list").push(&child));
    mounted(page.at("list").extend([tree!([&child])]));
    mounted(page.cursor().merge(tree!({ "a": 0, "b": &child })));
    mounted(page.cursor().set_default("c", &child).map(drop));
    assert_eq!(log.take(), []);
    child.set(json!(1)).unwrap();
    assert_eq!(log.take(), [replace(place!["a"], 1)]);
    // A child of a child is not freed by a write over the child.
    let holder = Observable::from_tree(tree!([&json(json!(0))])).unwrap();
    let inner = json(json!(0));
    holder.cursor().push(&inner).unwrap();
    page.at("b").set(&holder).unwrap();
    mounted(page.at("b").set(&inner));
    mounted(page.cursor().set(tree!({ "b": &inner })));
}

#[test]
fn a_write_may_move_what_it_frees() {
    // O8.5, O4.8
    let child = json(json!({ "n": 0 }));
    let page = Observable::from_tree(tree!({ "a": { "x": &child }, "list": [] })).unwrap();
    let log = Log::of(&page);
    page.at("a").at("x").set(&child).unwrap();
    page.at("a").set(tree!({ "y": [&child] })).unwrap();
    page.cursor()
        .merge(tree!({ "a": { "z": &child } }))
        .unwrap();
    page.cursor().set(tree!({ "elsewhere": &child })).unwrap();
    log.take();
    child.at("n").set(1).unwrap();
    assert_eq!(log.take(), [replace(place!["elsewhere", "n"], 1)]);
}

#[test]
fn no_observable_twice_and_none_inside_itself() {
    // O4.9
    let (outer, inner) = (json(json!([])), json(json!([])));
    let twice = outer.cursor().extend([&inner, &inner]);
    assert!(matches!(twice, Err(ObservableError::Repeated { .. })));
    let twice = outer.cursor().push(tree!({ "a": &inner, "b": [&inner] }));
    assert!(matches!(twice, Err(ObservableError::Repeated { .. })));
    outer.cursor().push(&inner).unwrap();
    for cycle in [
        outer.cursor().push(&outer),
        outer.cursor().set(tree!([&outer])),
        inner.cursor().push(&outer),
        outer.at(0).push(tree!({ "deep": &outer })),
    ] {
        assert!(matches!(cycle, Err(ObservableError::Cycle { .. })));
    }
    assert_eq!(outer.snapshot(), json!([[]]));
}

#[test]
fn a_child_lives_in_its_place_and_is_free_when_its_parent_is_gone() {
    // O4.7
    let page = json(json!([]));
    page.cursor()
        .push(tree!({ "child": json(json!(1)) }))
        .unwrap();
    page.at(0).at("child").set(2).unwrap();
    assert_eq!(page.snapshot(), json!([{ "child": 2 }]));

    let child = json(json!(0));
    drop(Observable::from_tree(tree!([&child])).unwrap());
    let log = Log::of(&page);
    page.cursor().push(&child).unwrap();
    child.set(json!(1)).unwrap();
    assert_eq!(log.take(), [add(place![1], 0), replace(place![1], 1)]);
}
