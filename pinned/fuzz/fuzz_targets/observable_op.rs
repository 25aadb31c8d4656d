//! An op is applied to whatever it meets, or leaves it alone.

#![no_main]

#[path = "../../tests/it/observable/apply/property.rs"]
mod property;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pinned::observable::{Op, OpKind, Segment};
use serde_json::{Map, Value};

const NAMES: [&str; 3] = ["a", "b", "0"];
const MOST_WITHIN: usize = 4;

fuzz_target!(|data: &[u8]| {
    let mut data = Unstructured::new(data);
    let Ok(mut mirror) = value(&mut data, 0) else {
        return;
    };
    while !data.is_empty() {
        let Ok(op) = op(&mut data) else {
            return;
        };
        property::applies_or_leaves_alone(&op, &mut mirror);
    }
});

fn op(data: &mut Unstructured<'_>) -> Result<Op> {
    let kind = *data.choose(&[OpKind::Replace, OpKind::Add, OpKind::Remove])?;
    let path = (0..data.int_in_range(0..=MOST_WITHIN)?).map(|_| segment(data));
    let path = path.collect::<Result<_>>()?;
    let value = match data.ratio(4, 5)? {
        true => Some(value(data, 0)?),
        false => None,
    };
    Ok(Op { kind, path, value })
}

/// Few names and positions, so that many paths lead somewhere.
fn segment(data: &mut Unstructured<'_>) -> Result<Segment> {
    Ok(match data.int_in_range(0..=4)? {
        0 | 1 => Segment::from(*data.choose(&NAMES)?),
        2 | 3 => Segment::Index(data.int_in_range(0..=MOST_WITHIN)?),
        _ => Segment::Index(data.arbitrary()?),
    })
}

fn value(data: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let within = if depth < MOST_WITHIN { 6 } else { 3 };
    Ok(match data.int_in_range(0..=within)? {
        0 => Value::Null,
        1 => Value::from(data.arbitrary::<bool>()?),
        2 => Value::from(data.arbitrary::<i64>()?),
        3 => Value::from(data.arbitrary::<&str>()?),
        4 | 5 => {
            let items = (0..data.int_in_range(0..=MOST_WITHIN)?).map(|_| value(data, depth + 1));
            Value::Array(items.collect::<Result<_>>()?)
        }
        _ => {
            let mut entries = Map::new();
            for name in NAMES {
                if data.arbitrary()? {
                    entries.insert(name.to_owned(), value(data, depth + 1)?);
                }
            }
            Value::Object(entries)
        }
    })
}
