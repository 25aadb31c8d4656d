//! Bodies that nobody who means well sends.

use pinboard::operators::bodies as operators;
use pinboard::sessions::{RegistryError, bodies};
use proptest::prelude::*;
use serde_json::{Value, json};

const SECRET: &str = "271828182845904523536028747135266249775724709369995";

/// Nothing panics, and what is refused is refused in a few plain words that tell nothing of what was sent.
fn read_all(body: &[u8]) {
    let refused = |error: RegistryError| {
        let said = error.to_string();
        assert_eq!(error.status(), 400);
        assert!(said.len() < 600, "{said}");
        assert!(!said.chars().any(char::is_control), "{said:?}");
        assert!(!said.contains(SECRET), "{said}");
    };
    if let Err(error) = bodies::register(body) {
        refused(error);
    }
    if let Err(error) = bodies::heartbeat(body) {
        refused(error);
    }
    if let Err(error) = bodies::release(body) {
        refused(error);
    }
    if let Err(error) = bodies::deregister(body) {
        refused(error);
    }
    if let Err(error) = operators::drain(body) {
        refused(error);
    }
    if let Err(error) = operators::undrain(body) {
        refused(error);
    }
    if let Err(error) = operators::wind_down(body) {
        refused(error);
    }
}

/// Values of every kind; secrets among them.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!(SECRET)),
        Just(json!(271_828_182_845_904_523_u64)),
        Just(json!("/rooms")),
        Just(json!("http://10.0.0.1:8000")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const MEMBERS: [&str; 24] = [
    "clientId",
    "secret",
    "namespaces",
    "advertiseUrl",
    "headroom",
    "draining",
    "challenge",
    "challengeValue",
    "hostname",
    "env",
    "envs",
    "takeover",
    "epoch",
    "prevSessionId",
    "instances",
    "sessionId",
    "drainDeadline",
    "acks",
    "namespace",
    "id",
    "deadline",
    "reregister",
    "x",
    "",
];

proptest! {
    #[test]
    fn bytes_of_any_kind_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&body);
    }

    #[test]
    fn members_of_any_kind_are_read_or_refused(
        values in prop::collection::vec((prop::sample::select(&MEMBERS[..]), value()), 0..12),
        list in any::<bool>(),
    ) {
        let object: Value = Value::Object(
            values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        );
        let body = if list { json!([object]) } else { object };
        read_all(body.to_string().as_bytes());
    }

    #[test]
    fn one_member_of_a_good_registration_may_be_anything(
        member in prop::sample::select(&MEMBERS[..]),
        value in value(),
    ) {
        let mut body = json!({
            "clientId": "client-1", "secret": SECRET, "namespaces": ["/rooms"],
            "advertiseUrl": "http://10.0.0.1:8000", "headroom": 1024, "draining": false,
            "challenge": "c", "challengeValue": SECRET, "instances": {"/rooms": ["blue"]},
        });
        body[member] = value;
        read_all(body.to_string().as_bytes());
        if let Ok(given) = bodies::register(body.to_string().as_bytes()) {
            // P1.5
            let shown = format!("{given:?}");
            prop_assert!(!shown.contains(&format!("{SECRET}\"")) || member != "secret", "{shown}");
        }
    }

    // P3.3
    #[test]
    fn queries_of_any_kind_are_read_or_refused(query in ".{0,60}") {
        let _ = operators::events(Some(&query));
    }
}
