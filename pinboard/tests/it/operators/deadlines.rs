//! Every deadline entry, given everything that is none (`cases.md`).

use serde_json::{Value, json};

use crate::sessions::rig::{OPERATOR, Worker, World, room};

const EXPECTED: &str = "deadline: expected a deadline: seconds from 0 to 3153600000, or null";

#[tokio::test(start_paused = true)]
async fn a_deadline_is_seconds_or_null_and_nothing_else() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    world.place(&room("blue"), &session).await;
    for (path, body) in [
        ("/registry/drain", json!({"clientId": "client-1"})),
        (
            "/registry/wind_down",
            json!({"namespace": "/rooms", "id": "blue"}),
        ),
        ("/registry/wind_down", json!({"namespace": "/rooms"})),
    ] {
        let with = |deadline: &str| {
            let text = body.to_string();
            format!("{},\"deadline\":{deadline}}}", &text[..text.len() - 1])
        };
        for wrong in [
            "-1",
            "-0.001",
            "1e300",
            "3153600001",
            "-1e300",
            "true",
            "false",
            "\"5\"",
            "\"\"",
            "[]",
            "{}",
        ] {
            let said = node
                .post_text(path, OPERATOR, &with(wrong))
                .await
                .malformed();
            assert_eq!(said, EXPECTED, "{path} {wrong}");
        }
        for wrong in ["NaN", "Infinity", "-Infinity", "1e999", "0x1", ""] {
            let said = node
                .post_text(path, OPERATOR, &with(wrong))
                .await
                .malformed();
            assert!(
                said.starts_with("malformed JSON: "),
                "{path} {wrong}: {said}"
            );
        }
        // Nothing is not null.
        let said = node.post(path, OPERATOR, &body).await.malformed();
        assert_eq!(said, "missing field `deadline`", "{path}");
    }
    // None of them did anything.
    assert_eq!(world.row(&room("blue")).await.expect("a row").fence, None);
    let client = world.store.sessions_since(0).await.expect("the store");
    assert_eq!(client.changed[0].drain, None);

    for right in ["null", "0", "0.5", "1e3", "3153600000", "-0.0"] {
        for (path, body) in [
            ("/registry/drain", json!({"clientId": "client-1"})),
            (
                "/registry/wind_down",
                json!({"namespace": "/rooms", "id": "blue"}),
            ),
        ] {
            let mut body: Value = body;
            body["deadline"] = serde_json::from_str(right).expect("JSON");
            node.post(path, OPERATOR, &body).await.ok();
        }
    }
}
