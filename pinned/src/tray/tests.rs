//! The fields on their own.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::field::Field;
use super::{Persistent, PersistentOutbox};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// What a segment that stands changes of the entry.
fn entry(field: &mut impl Field) -> Option<Option<String>> {
    let changes = field.changes().expect("JSON");
    field.commit();
    changes.entry.map(|text| text.map(|text| text.to_string()))
}

#[test]
fn a_value_has_an_entry_unless_it_is_the_declared_one() {
    // T2.6, T4.2, T4.4
    let mut value = Persistent::declared(|| 7_u64);
    assert_eq!((*value, entry(&mut value)), (7, None));
    value.set(7);
    assert_eq!(entry(&mut value), None);
    value.update(|value| *value += 1);
    assert_eq!(entry(&mut value), Some(Some("8".to_owned())));
    value.set(8);
    assert_eq!(entry(&mut value), None);
    value.reset();
    assert_eq!(entry(&mut value), Some(None));
    assert_eq!(*value, 7);
}

#[test]
fn a_stored_null_is_not_an_absent_entry() {
    // T2.6, edge case 14
    let declared = || Persistent::declared(|| Some(1_u64));
    let mut value = declared();
    value.hydrate(Some(&raw("null"))).unwrap();
    assert_eq!(*value, None);
    let mut value = declared();
    value.hydrate(None).unwrap();
    assert_eq!(*value, Some(1));
    value.set(None);
    assert_eq!(entry(&mut value), Some(Some("null".to_owned())));
}

#[test]
fn each_tray_has_an_initial_value_of_its_own() {
    // T4.3
    let declared = || Persistent::declared(|| vec![1]);
    let (mut one, other) = (declared(), declared());
    one.update(|list| list.push(2));
    assert_eq!((&**one, &**other), (&[1, 2][..], &[1][..]));
}

#[test]
fn a_segment_that_is_taken_back_leaves_the_value_as_it_was() {
    let mut value = Persistent::declared(String::new);
    value.set("kept".to_owned());
    entry(&mut value);
    value.set("lost".to_owned());
    value.rollback().unwrap();
    assert_eq!(&**value, "kept");
    assert_eq!(entry(&mut value), None);
    value.reset();
    entry(&mut value);
    value.set("lost".to_owned());
    value.rollback().unwrap();
    assert_eq!(&**value, "");
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Point {
    y: u64,
    x: u64,
}

#[test]
fn a_stored_value_is_the_same_however_its_keys_are_ordered() {
    // T3.2, D9.10: what comes back from PostgreSQL keeps neither order nor spacing.
    let mut value = Persistent::declared(|| Point { y: 0, x: 0 });
    value.hydrate(Some(&raw(r#"{"x":1,"y":2}"#))).unwrap();
    value.set(Point { y: 2, x: 1 });
    assert_eq!(entry(&mut value), None);
    value.set(Point { y: 1, x: 2 });
    assert_eq!(entry(&mut value), Some(Some(r#"{"y":1,"x":2}"#.to_owned())));
}

#[test]
fn an_outbox_counts_attempts_of_one_item() {
    // T2.5, T7
    let mut outbox = PersistentOutbox::<Point>::declared();
    let charge = || Point { y: 1, x: 1 };
    assert_eq!((outbox.attempt(), outbox.ack().is_none()), (0, true));
    assert_eq!(outbox.dispatch(charge()), 1);
    assert_eq!(outbox.dispatch(charge()), 2);
    let stored = entry(&mut outbox).flatten().unwrap();
    assert_eq!(stored, r#"{"item":{"y":1,"x":1},"attempt":2}"#);
    let mut again = PersistentOutbox::<Point>::declared();
    again.hydrate(Some(&raw(&stored))).unwrap();
    assert_eq!(again.dispatch(charge()), 3);
    assert_eq!(again.dispatch(Point { y: 9, x: 9 }), 1);
    assert_eq!(again.ack(), Some(Point { y: 9, x: 9 }));
    assert_eq!(entry(&mut again), Some(None));
    // T2.7
    for malformed in [
        "1",
        r#"{"item":{"y":1,"x":1}}"#,
        r#"{"item":{"y":1,"x":1},"attempt":0}"#,
        r#"{"item":{"y":1,"x":1},"attempt":1,"more":1}"#,
    ] {
        let mut outbox = PersistentOutbox::<Point>::declared();
        outbox.hydrate(Some(&raw(malformed))).unwrap_err();
    }
}

#[test]
fn those_who_watch_a_field_see_what_stands_and_not_what_was_taken_back() {
    // T5.6, O7.2
    let mut value = Persistent::declared(Vec::<u64>::new);
    let view = value.observe().unwrap();
    value.update(|list| list.push(1));
    assert_eq!(view.get().unwrap(), [0_u64; 0]);
    entry(&mut value);
    assert_eq!(view.get().unwrap(), [1]);
    value.update(|list| list.push(2));
    value.rollback().unwrap();
    assert_eq!(view.get().unwrap(), [1]);
    assert!(view.at(0).set(3).is_err());
}

#[test]
fn a_change_that_panics_half_way_is_taken_back() {
    let mut value = Persistent::declared(|| vec![1_u64]);
    let change = std::panic::AssertUnwindSafe(|| {
        value.update(|value| {
            value.push(2);
            panic!("half way");
        })
    });
    std::panic::catch_unwind(change).expect_err("it panicked");
    value.rollback().unwrap();
    assert_eq!(*value, [1]);
    assert_eq!(entry(&mut value), None);
}

#[test]
fn a_float_comes_back_as_it_was_to_its_last_bit() {
    // T4.4
    let mut bits = 0x1234_5678_9abc_def1_u64;
    for _ in 0..20_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = f64::from_bits(bits);
        if number.is_finite() {
            let mut value = Persistent::declared(|| 0.0_f64);
            value.set(number);
            let stored = entry(&mut value).flatten().unwrap();
            let mut again = Persistent::declared(|| 0.0_f64);
            again.hydrate(Some(&raw(&stored))).unwrap();
            assert_eq!(again.to_bits(), number.to_bits(), "{stored}");
        }
    }
}
