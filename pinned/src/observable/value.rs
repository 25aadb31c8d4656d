use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::error::{EncodingError, ObservableError};
use super::path::Segment;

/// 2^53 - 1: the largest magnitude of an integer that every receiver reads back exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Whether the whole of `value` may stand in a tree.
pub(super) fn check(value: &Value) -> Result<(), ObservableError> {
    match value {
        Value::Number(number) => check_number(number),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check(item).map_err(|e| e.within(&[Segment::Index(index)]))
        }),
        Value::Object(entries) => entries.iter().try_for_each(|(key, item)| {
            check(item).map_err(|e| e.within(&[Segment::Key(key.clone())]))
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn check_number(number: &Number) -> Result<(), ObservableError> {
    let magnitude = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    match magnitude {
        Some(magnitude) if magnitude > MAX_INTEGER => Err(ObservableError::Encoding {
            path: Vec::new(),
            reason: EncodingError::IntegerTooLarge,
        }),
        _ => Ok(()),
    }
}

/// What `value` is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => LIST,
        Value::Object(_) => OBJECT,
    }
}

pub(super) const LIST: &str = "a list";
pub(super) const OBJECT: &str = "an object";

/// Equality of values as their receivers see them: `1` and `1.0` are one number.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64().partial_cmp(&b.as_f64()) == Some(Ordering::Equal)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check, same};

    #[test]
    fn integers_stop_at_two_to_the_53_less_one_on_both_sides() {
        // O1.1, O1.3, O8.7
        let most = 9_007_199_254_740_991_i64;
        for legal in [json!(most), json!(-most), json!(1e300), json!(-0.5)] {
            assert!(check(&legal).is_ok(), "{legal}");
        }
        for illegal in [
            json!(most + 1),
            json!(-most - 1),
            json!(u64::MAX),
            json!(i64::MIN),
        ] {
            assert!(check(&illegal).is_err(), "{illegal}");
        }
    }

    #[test]
    fn the_error_names_the_place_of_the_bad_number() {
        let error = check(&json!({ "a": [0, { "b": u64::MAX }] })).unwrap_err();
        assert_eq!(error.path(), ["a".into(), 1.into(), "b".into()]);
    }

    #[test]
    fn numbers_are_equal_by_value_and_bools_are_no_numbers() {
        // O3.8
        assert!(same(&json!([1, { "a": 2.0 }]), &json!([1.0, { "a": 2 }])));
        assert!(!same(&json!(1), &json!(true)));
        assert!(!same(&json!([1]), &json!([1, 2])));
    }
}
