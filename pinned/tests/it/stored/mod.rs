//! Rows as a store may give them (T2.7): of this version, of another, damaged, or of somebody else.

mod every;

use pinned::durability::Doc;
use proptest::prelude::*;

use every::{Every, Later, assert_is_whole, opens_to_the_same_again};

/// What stands in the rows of queues.
fn items() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        6 => (-3..9_i64).prop_map(|n| format!(r#"{{"n":{n}}}"#)),
        2 => (-3..9_i64).prop_map(|n| format!(r#"{{ "n": {n}, "note": "a \" b" }}"#)),
        1 => Just(r#"{"n":1,"~admit":[1.0,null]}"#.to_owned()),
        1 => Just(r#"{"n":1,"~admit":{"~admit":2}}"#.to_owned()),
        1 => values(),
    ];
    prop::collection::vec(item, 0..5).prop_map(|items| format!("[{}]", items.join(",")))
}

fn queue() -> impl Strategy<Value = String> {
    let part = |name: &'static str, value: BoxedStrategy<String>| {
        prop::option::of(value.prop_map(move |value| format!("\"{name}\":{value}")))
    };
    let chunks = (0..4_u64, 0..4_u64).prop_map(|(from, to)| format!("[{from},{to}]"));
    let parts = (
        part("taken", items().boxed()),
        part("items", items().boxed()),
        part("chunks", chunks.boxed()),
        part("tail", items().boxed()),
    );
    let parts = parts.prop_map(|(taken, items, chunks, tail)| {
        let parts = [taken, items, chunks, tail].map(Option::into_iter);
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{{{}}}", parts.join(","))
    });
    prop_oneof![items(), parts]
}

/// Any JSON, and now and then none.
fn values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| serde_json::json!(value).to_string()),
        ".{0,6}".prop_map(|value| serde_json::json!(value).to_string()),
        "[ -~]{0,6}",
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {} ]", items.join(" , "))),
            prop::collection::vec(("[a-c~]{0,2}", inner), 0..4).prop_map(object),
        ]
    })
}

fn object<N: AsRef<str>>(entries: Vec<(N, String)>) -> String {
    let entries = entries.iter().map(|(name, value)| {
        let name = serde_json::json!(name.as_ref());
        format!("{name}:{value}")
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// An entry as it may stand in the row, or nearly so.
fn entry() -> BoxedStrategy<(String, String)> {
    fn of<V: AsRef<str>>(
        name: &'static str,
        value: impl Strategy<Value = V> + 'static,
    ) -> BoxedStrategy<(String, String)> {
        value
            .prop_map(move |value| (name.to_owned(), value.as_ref().to_owned()))
            .boxed()
    }
    let record = prop_oneof![
        Just(r#"[{"key":1.0,"target":["work","~"],"outcome":"admitted","cleaned":false}]"#),
        Just(r#"[{"key":{"b":1,"a":2},"target":["w","x"],"outcome":"absorbed","cleaned":true}]"#),
        Just(r#"[{"key":1,"target":["w"],"outcome":"admitted","cleaned":false}]"#),
    ];
    let usual = prop_oneof![
        4 => of("queue", queue()),
        2 => of("any", queue()),
        1 => of("texts", Just(r#"["a","\u0000\ud83d\ude00"]"#)),
        1 => of("texts", queue()),
        1 => of("count", prop_oneof![Just("7"), Just("0"), Just("1.5"), Just("18446744073709551615")]),
        1 => of("credit", prop_oneof![Just("100"), Just("-1"), Just("\"1\"")]),
        1 => of("scores", prop_oneof![Just(r#"{"b":1.0,"a":null}"#), Just("{ }"), Just("[]")]),
        2 => of("sending", (0..3_u64).prop_map(|n| format!(r#"{{"item":{{"n":1}},"attempt":{n}}}"#))),
        1 => of("~v", prop_oneof![Just("2"), Just("0"), Just("1"), Just("null")]),
        1 => of("~attempts", prop_oneof![Just("3"), Just("0"), Just("-1")]),
        1 => of("~parked", prop_oneof![Just("true"), Just("false")]),
        1 => of("~inbox", prop_oneof![Just(r#"[{"command":"delete"}]"#), Just(r#"[{"command":"x"}]"#)]),
        1 => of("~dispatch", record),
        1 => of("~ignore", items()),
        1 => of("~state", values()),
        1 => ("[~a-c]{0,3}", values()).boxed(),
    ];
    prop_oneof![12 => usual, 1 => (usual_names(), values())].boxed()
}

fn usual_names() -> impl Strategy<Value = String> {
    const NAMES: &[&str] = &[
        "queue", "any", "texts", "count", "credit", "scores", "sending",
    ];
    prop::sample::select(NAMES).prop_map(str::to_owned)
}

fn rows() -> impl Strategy<Value = String> {
    prop_oneof![
        19 => prop::collection::vec(entry(), 0..6).prop_map(object),
        1 => values(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stored_row_is_refused_or_opens_to_the_same_again(text in rows()) {
        // T2.7
        if let Ok(doc) = Doc::parse(text) {
            opens_to_the_same_again::<Every>(&doc);
            opens_to_the_same_again::<Later>(&doc);
        }
    }

    #[test]
    fn a_doc_is_an_object_and_stays_as_it_was_read(text in rows()) {
        // D6.1
        let is_object = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(&text);
        match Doc::parse(text.as_str()) {
            Ok(doc) => {
                prop_assert_eq!(doc.as_str(), &text);
                prop_assert_eq!(doc.to_map(), is_object.expect("it was taken"));
                assert_is_whole(&Doc::from(doc.to_map()));
            }
            Err(_) => prop_assert!(is_object.is_err()),
        }
    }
}

#[test]
fn most_generated_rows_are_near_enough_to_be_opened() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = rows();
    let opened = (0..400).filter(|_| {
        let text = strategy
            .new_tree(&mut runner)
            .expect("no filters")
            .current();
        Doc::parse(text).is_ok_and(|doc| opens_to_the_same_again::<Every>(&doc))
    });
    let opened = opened.count();
    assert!((40..360).contains(&opened), "{opened} of 400");
}
