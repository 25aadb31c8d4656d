//! A durable field as others may watch it (T4.1, T5.1, T5.6).

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::observable::{Cursor, Observable, ObservableError, ObservableView, without_waiting};

/// Shows each committed state of a field, op by op: what changed of it, at whatever depth, and nothing else.
///
/// It is read-only to others (T5.7): the field's own rules hold on every path, because there is no other.
pub(crate) struct Mirror(Observable);

impl Mirror {
    pub(crate) fn of<S: Serialize + ?Sized>(value: &S) -> Result<Self, ObservableError> {
        let tree = crate::observable::Tree::encode(value);
        Observable::from_tree(tree).map(Self)
    }

    pub(crate) fn view<T>(&self) -> ObservableView<T> {
        self.0.typed().view()
    }

    /// Comes to show `value`. One that an observable cannot hold (O1.3) is not shown.
    pub(crate) fn follow<S: Serialize + ?Sized>(&self, value: &S) {
        let shown = self.0.snapshot();
        let followed = serde_json::to_value(value)
            .map_err(|error| error.to_string())
            .and_then(|value| {
                // Under the instance's lock, which a subscriber on another thread may be waiting for.
                without_waiting(|| follow(&self.0.cursor(), &shown, value))
                    .map_err(|error| error.to_string())
            });
        if let Err(error) = followed {
            tracing::error!(
                target: "pinned::tray",
                error,
                "a durable field has a value that those who observe it cannot be shown"
            );
        }
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mirror")
    }
}

/// Changes what stands at `place` from `old` to `new` in the smallest steps that are plain to see.
fn follow(place: &Cursor, old: &Value, new: Value) -> Result<(), ObservableError> {
    if *old == new {
        return Ok(());
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                place.remove(key)?;
            }
            for (key, new) in new {
                match old.get(&key) {
                    Some(old) => follow(&place.at(&key), old, new)?,
                    None => place.at(&key).set(new)?,
                }
            }
            Ok(())
        }
        (Value::Array(old), Value::Array(new)) => follow_list(place, old, new),
        (Value::String(old), Value::String(new))
            if !old.is_empty() && !place.path().is_empty() && new.starts_with(old.as_str()) =>
        {
            place.push_str(&new[old.len()..])
        }
        (_, new) => place.set(new),
    }
}

/// What both have in front and at the end stays; what is between is removed, put in, or followed one by one.
fn follow_list(place: &Cursor, old: &[Value], new: Vec<Value>) -> Result<(), ObservableError> {
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - front;
    let back = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let (gone, come) = (old.len() - front - back, new.len() - front - back);
    if gone.max(come) > 16 && gone.min(come) > 0 {
        // Little is left of it: one op rather than many.
        return place.set(new);
    }
    let mut new = new.into_iter().skip(front);
    let changed = old.iter().enumerate().skip(front).take(gone.min(come));
    for (index, old) in changed {
        if let Some(new) = new.next() {
            follow(&place.at(index), old, new)?;
        }
    }
    for _ in come..gone {
        place.remove(front + come)?;
    }
    for index in front + gone..front + come {
        if let Some(new) = new.next() {
            place.insert(index, new)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::observable::Op;

    fn ops(from: &Value, to: &Value) -> Vec<Op> {
        let mirror = Mirror::of(from).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let view = mirror.view::<Value>();
        let _subscription = view.subscribe(move |op| noted.lock().push(op.clone()));
        mirror.follow(to);
        assert_eq!(view.snapshot(), *to);
        std::mem::take(&mut *seen.lock())
    }

    #[test]
    fn those_who_watch_see_what_changed_and_where() {
        // T4.1, O2.4
        let from = json!({"a": {"b": [1, 2]}, "gone": 1, "text": "ab"});
        let to = json!({"a": {"b": [1, 2, 3]}, "new": null, "text": "abc"});
        let path = |path: &[&str]| path.iter().map(|&part| part.into()).collect::<Vec<_>>();
        let mut at_end = path(&["a", "b"]);
        at_end.push(2.into());
        let mut after = path(&["text"]);
        after.push(2.into());
        assert_eq!(
            ops(&from, &to),
            [
                Op::remove(path(&["gone"])),
                Op::add(at_end, 3),
                Op::replace(path(&["new"]), Value::Null),
                Op::add(after, "c"),
            ]
        );
        assert_eq!(
            ops(&json!([1, 2, 3]), &json!([2, 3])),
            [Op::remove([0.into()])]
        );
        assert_eq!(ops(&json!(1), &json!(1)), []);
        assert_eq!(ops(&json!(1), &json!("1")), [Op::replace([], "1")]);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0_i64..4).prop_map(Value::from),
            "[ab]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 40, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..24).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_it_was_it_comes_to_show_what_it_is(from in value(), to in value()) {
            let seen = ops(&from, &to);
            let mut replayed = from;
            for op in seen {
                op.apply(&mut replayed).unwrap();
            }
            prop_assert_eq!(replayed, to);
        }
    }
}
