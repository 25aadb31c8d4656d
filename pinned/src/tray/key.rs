//! Keys of admissions: JSON, compared by its canonical form (T13.15).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of a keyed admission, in canonical form: object keys sorted, and numbers that are equal written alike, so
/// that `1` and `1.0` are one key and `true` is another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value", into = "Value")]
pub(crate) struct Key(Value);

impl From<Value> for Key {
    fn from(value: Value) -> Self {
        Self(canonical(value))
    }
}

impl From<Key> for Value {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl Key {
    pub(crate) fn as_value(&self) -> &Value {
        &self.0
    }
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(canonical_number(number)),
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries
                .into_iter()
                .map(|(name, value)| (name, canonical(value)))
                .collect()
        }
        other => other,
    }
}

/// A float without a fraction is the integer of its value, where JSON has one in 64 bits: a store may write it as that,
/// as `jsonb` does.
fn canonical_number(number: serde_json::Number) -> serde_json::Number {
    // 2^64 and -2^63, both exact.
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    const LEAST: f64 = -9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float)
            if number.is_f64() && float.fract() == 0.0 && (LEAST..ABOVE).contains(&float) =>
        {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "without a fraction, and within the bounds and of the sign of the type"
            )]
            if float < 0.0 {
                (float as i64).into()
            } else {
                (float as u64).into()
            }
        }
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_equal_when_their_canonical_json_is() {
        // T13.15
        let key = |value| Key::from(value);
        assert_eq!(key(json!(1)), key(json!(1.0)));
        assert_eq!(key(json!(-0.0)), key(json!(0)));
        assert_ne!(key(json!(1)), key(json!(true)));
        assert_ne!(key(json!(1)), key(json!("1")));
        assert_eq!(
            key(json!({"a": [1.0], "b": null})),
            key(json!({"b": null, "a": [1]}))
        );
        assert_ne!(key(json!(1.5)), key(json!(1)));
        assert_ne!(Key::from(json!(null)), Key::from(json!([])));
    }

    // T13.15: a key is the same after a store that writes whole floats as integers.
    #[test]
    fn a_float_without_a_fraction_is_the_integer_of_its_value() {
        assert_eq!(
            Key::from(json!(1e16)),
            Key::from(json!(10_000_000_000_000_000_u64))
        );
        assert_eq!(
            Key::from(json!(-1e16)),
            Key::from(json!(-10_000_000_000_000_000_i64))
        );
        assert_eq!(Key::from(json!(-0.0)), Key::from(json!(0)));
        assert_eq!(
            Key::from(json!(-9_223_372_036_854_775_808.0)),
            Key::from(json!(i64::MIN))
        );
        assert_ne!(
            Key::from(json!(18_446_744_073_709_551_616.0)),
            Key::from(json!(u64::MAX))
        );
    }
}
