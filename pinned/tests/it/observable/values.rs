//! What a tree holds and what it refuses (O1, O6).

use std::collections::{BTreeMap, HashMap};

use pinned::Observable;
use pinned::observable::{EncodingError, ObservableError, Tree, tree};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Log, json, place};

const MOST: i64 = 9_007_199_254_740_991;

#[test]
fn integers_up_to_the_bound_pass_on_every_way_in() {
    // O1.1, O1.3, O8.7
    for n in [MOST, -MOST] {
        assert_eq!(Observable::new(n).unwrap().snapshot(), json!(n));
        assert_eq!(json(json!([n])).snapshot(), json!([n]));
        json(json!([])).cursor().push(n).unwrap();
    }
    for n in [MOST + 1, -MOST - 1] {
        let refused = |result: Result<(), ObservableError>| {
            assert!(matches!(
                result,
                Err(ObservableError::Encoding {
                    reason: EncodingError::IntegerTooLarge,
                    ..
                })
            ));
        };
        refused(Observable::new(n).map(drop));
        refused(Observable::new(json!({ "n": n })).map(drop));
        refused(Observable::new(i128::from(n) << 64).map(drop));
        refused(json(json!([])).cursor().push(n));
        refused(json(json!([])).cursor().extend([n]));
        refused(json(json!({})).cursor().merge(tree!({ "n": n })));
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_not_made_null() {
    // O1.3
    #[derive(Serialize)]
    struct Reading {
        values: Vec<f64>,
    }
    let error = Observable::new(Reading {
        values: vec![1.0, f64::NAN],
    })
    .unwrap_err();
    assert_eq!(error.path(), place!["values", 1]);
    assert!(matches!(
        error,
        ObservableError::Encoding {
            reason: EncodingError::NotFinite,
            ..
        }
    ));
    let page = json(json!([]));
    assert!(page.cursor().push(f64::INFINITY).is_err());
    assert!(page.cursor().push(f32::NEG_INFINITY).is_err());
}

#[test]
fn keys_are_strings_and_bytes_are_no_values() {
    // O1.4
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(b"raw")
        }
    }
    for refused in [
        Observable::new(HashMap::from([(1, "one")])).map(drop),
        Observable::new(HashMap::from([(true, 1)])).map(drop),
        Observable::new(Bytes).map(drop),
    ] {
        assert!(matches!(refused, Err(ObservableError::Type { .. })));
    }
    assert!(Observable::new(BTreeMap::from([('k', 1)])).is_ok());
}

#[test]
fn every_shape_of_rust_data_is_the_json_serde_makes_of_it() {
    // O1.1, O1.2
    #[derive(Serialize)]
    enum Shape {
        Unit,
        New(u8),
        Pair(u8, char),
        Fields { a: Option<u8>, b: () },
    }
    #[derive(Serialize)]
    struct Wrapper(f32);
    #[derive(Serialize)]
    struct Unit;
    let value = (
        [Shape::Unit, Shape::New(1), Shape::Pair(2, 'x')],
        Shape::Fields { a: Some(1), b: () },
        Wrapper(0.5),
        Unit,
        (i128::from(-3), 4_u128),
    );
    let expected = serde_json::to_value(&value).unwrap();
    assert_eq!(Observable::new(value).unwrap().snapshot(), expected);
}

#[test]
fn a_write_is_checked_all_through_before_anything_changes() {
    // O1.5, O8.4
    let child = json(json!("child"));
    let page = Observable::from_tree(tree!({ "list": [1, &child], "object": { "a": 1 } })).unwrap();
    let (before, log) = (page.snapshot(), Log::of(&page));
    let (list, object) = (page.at("list"), page.at("object"));
    let other = json(json!(0));
    let bad = || tree!([{ "fine": &other }, { "bad": f64::NAN }]);
    assert!(list.push(bad()).is_err());
    assert!(list.insert(0, bad()).is_err());
    assert!(list.extend([tree!(1), bad()]).is_err());
    assert!(list.at(1).set(bad()).is_err());
    assert!(list.at(2).set(1).is_err());
    assert!(list.at("key").set(1).is_err());
    assert!(list.remove(2).is_err());
    assert!(list.remove("key").is_err());
    assert!(list.merge(json!({})).is_err());
    assert!(list.remove_value("absent").is_err());
    assert!(list.set_default("key", 1).is_err());
    assert!(object.merge(tree!({ "a": 2, "b": bad() })).is_err());
    assert!(object.merge([1]).is_err());
    assert!(object.at("a").at("b").set(1).is_err());
    assert!(object.at(0).set(1).is_err());
    assert!(object.at("new").at("deeper").set(1).is_err());
    assert!(object.set_default("new", bad()).is_err());
    assert!(object.remove("absent").is_err());
    assert!(object.push(1).is_err());
    assert!(object.pop().is_err());
    assert!(page.cursor().set(bad()).is_err());
    assert_eq!((page.snapshot(), log.take()), (before, vec![]));

    // The mounts are as they were too.
    child.set(json!("still there")).unwrap();
    other.set(json!(1)).unwrap();
    assert_eq!(
        log.take(),
        [super::replace(place!["list", 1], "still there")]
    );
    list.push(&other).unwrap();
}

#[test]
fn what_is_written_is_copied() {
    // O1.6
    let page = json(json!({ "a": [1], "b": null }));
    page.at("b").set(page.at("a")).unwrap();
    page.at("a").push(2).unwrap();
    assert_eq!(page.snapshot(), json!({ "a": [1, 2], "b": [1] }));
    assert!(page.at("b").set(page.at("missing")).is_err());
}

#[test]
fn an_observable_is_never_the_whole_of_another() {
    // O1.7
    let (inner, outer) = (json(json!(1)), json(json!(2)));
    let wrapped = |error| matches!(error, ObservableError::Wrapped { .. });
    assert!(wrapped(Observable::from_tree(&inner).unwrap_err()));
    assert!(wrapped(Observable::new(inner.clone()).unwrap_err()));
    assert!(wrapped(outer.cursor().set(&inner).unwrap_err()));
    assert!(wrapped(outer.cursor().set(inner.view()).unwrap_err()));
    assert_eq!(outer.snapshot(), 2);
}

#[test]
fn the_default_is_null_or_what_the_type_says() {
    // O1.8
    assert_eq!(Observable::<Value>::default().snapshot(), Value::Null);
    assert_eq!(Observable::<Vec<u8>>::default().snapshot(), json!([]));
}

#[test]
fn reading_shares_a_value_and_is_not_disturbed_by_writes() {
    // O6.1, O6.2
    let page = json(json!({ "list": [1, 2, 3] }));
    let lent = page.at("list").with(|list| {
        page.at("list").push(4).unwrap();
        list.clone()
    });
    assert_eq!(lent.unwrap(), json!([1, 2, 3]));
    assert_eq!(page.at("list").len().unwrap(), 4);
    let snapshot = page.snapshot();
    page.set(json!(null)).unwrap();
    assert_eq!(snapshot, json!({ "list": [1, 2, 3, 4] }));
}

#[test]
fn reading_copies_nothing_where_nothing_is_mounted_any_more_either() {
    // O6.2
    let (child, other) = (json(json!(0)), json(json!(0)));
    let page =
        Observable::from_tree(tree!({ "list": [{ "deep": [&child] }], "x": &other })).unwrap();
    let address = |page: &Observable| page.with(|value| std::ptr::from_ref(value) as usize);
    page.at("list").at(0).at("deep").pop().unwrap();
    page.cursor().remove("x").unwrap();
    let first = page.with(|value| (std::ptr::from_ref(value) as usize, address(&page)));
    assert_eq!(first.0, first.1);
    page.at("list").push(&child).unwrap();
    let first = page.with(|value| (std::ptr::from_ref(value) as usize, address(&page)));
    assert_ne!(first.0, first.1);
}

#[test]
fn a_subtree_with_mounts_is_read_as_a_snapshot() {
    // O6.1, O6.2, O4.5
    let child = json(json!({ "n": 1 }));
    let page = Observable::from_tree(tree!({ "plain": [1], "mixed": [&child] })).unwrap();
    assert_eq!(
        page.at("mixed").with(Value::clone).unwrap(),
        json!([{ "n": 1 }])
    );
    assert_eq!(page.at("mixed").at(0).at("n").get_as::<u8>().unwrap(), 1);
    assert!(page.at("mixed").contains(json!({ "n": 1 })).unwrap());
    assert_eq!(
        page.with(Value::clone),
        json!({ "plain": [1], "mixed": [{ "n": 1 }] })
    );
}

#[test]
fn typed_values_round_trip_and_say_when_they_no_longer_fit() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Todo {
        title: String,
        done: bool,
    }
    let todo = || Todo {
        title: "water".into(),
        done: false,
    };
    let observable = Observable::new(todo()).unwrap();
    assert_eq!(observable.get().unwrap(), todo());
    let text = serde_json::to_string(&observable).unwrap();
    let again: Observable<Todo> = serde_json::from_str(&text).unwrap();
    assert_eq!(again.get().unwrap(), todo());
    observable.at("done").set("perhaps").unwrap();
    assert!(matches!(
        observable.get(),
        Err(ObservableError::Deserialize { .. })
    ));
}

#[test]
fn fields_that_are_observables_are_mounted() {
    // O4.1
    #[derive(Serialize, Deserialize)]
    struct Page {
        title: String,
        items: Observable<Vec<u8>>,
    }
    let items = Observable::new(vec![1]).unwrap();
    let page = Observable::new(Page {
        title: "x".into(),
        items: items.clone(),
    })
    .unwrap();
    let log = Log::of(&page);
    items.cursor().push(2).unwrap();
    assert_eq!(log.take(), [super::add(place!["items", 1], 2)]);
    assert_eq!(page.get().unwrap().items.get().unwrap(), [1, 2]);
    assert_eq!(serde_json::to_value(&items).unwrap(), json!([1, 2]));
    let copy = json(json!([]));
    copy.cursor()
        .push(Tree::encode(&json!({ "n": 1 })))
        .unwrap();
    assert_eq!(copy.snapshot(), json!([{ "n": 1 }]));
}
