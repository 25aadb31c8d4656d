//! `Op::apply` on whatever it may meet (O2): receivers take ops from outside.

mod property;

use pinned::observable::{Op, OpKind, Segment};
use proptest::prelude::*;
use serde_json::{Value, json};

use property::applies_or_leaves_alone;

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[aä🦀]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab0]", inner, 0..3).prop_map(|entries| json!(entries)),
        ]
    })
}

/// Of few names and positions, so that many paths lead somewhere.
fn ops() -> impl Strategy<Value = Op> {
    let segment = prop_oneof![
        3 => "[ab0]".prop_map(Segment::Key),
        3 => (0..4_usize).prop_map(Segment::Index),
        1 => any::<usize>().prop_map(Segment::Index),
    ];
    let kind = prop::sample::select(&[OpKind::Replace, OpKind::Add, OpKind::Remove][..]);
    let path = prop::collection::vec(segment, 0..4);
    (kind, path, prop::option::weighted(0.8, values())).prop_map(|(kind, path, value)| Op {
        kind,
        path,
        value,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_op_is_applied_or_leaves_the_value_alone(value in values(), ops in prop::collection::vec(ops(), 1..6)) {
        let mut mirror = value;
        for op in ops {
            applies_or_leaves_alone(&op, &mut mirror);
        }
    }
}
