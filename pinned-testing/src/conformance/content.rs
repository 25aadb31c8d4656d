//! Docs and keys with awkward content.

use pinned::durability::{Doc, InstanceKey, StoreError};
use serde_json::{Map, Value, json};

use super::scene::{Scene, Verdict, holds, key, number, object, set};

pub(super) async fn checks(scene: &Scene) {
    docs_come_back(scene).await;
    keys_come_back(scene).await;
    large_docs_come_back(scene).await;
    a_doc_is_taken_or_refused_whole(scene).await;
}

async fn docs_come_back(scene: &Scene) {
    let mut nested = json!("the end");
    for depth in 0..100 {
        nested = if depth % 2 == 0 {
            json!([nested])
        } else {
            json!({ "in": nested })
        };
    }
    let docs = [
        json!({}),
        json!({ "~v": 3, "~attempts": 1, "": "the empty key", "a.b": 1, "$x": 2, "a'b\"c\\d": 3 }),
        json!({ "null": null, "true": true, "false": false, "list": [], "object": {} }),
        json!({ "quotes": "it's \"quoted\" \\ and `so` on; -- ' OR 1=1", "?1": "$1 :a @b %s {}" }),
        json!({ "text": "z\u{e4}hl \u{4f60}\u{597d} \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{202e}rtl", "\u{1f600}": "\u{feff}" }),
        json!({ "lines": "a\nb\r\nc\td\u{1}\u{1f}\u{7f}\u{2028}" }),
        json!({ "big": 9_007_199_254_740_991_u64, "small": -9_007_199_254_740_991_i64, "zero": 0 }),
        json!({ "half": 1.5, "tenth": 0.1, "tiny": 1e-7, "huge": 1.5e300 }),
        json!({ "list": [null, [null], {}, [], "", 0, false] }),
        json!({ "nested": nested }),
    ];
    let (room, rule) = (scene.fresh(), "D1.2 (a doc comes back as it was written)");
    let work = key("work", "~");
    for doc in docs {
        room.set(&work, true, doc.clone()).await.holds(rule);
        room.holds_row(rule, &work, Some((true, doc.clone()))).await;
        room.holds_rows(rule, &[("work", "~", true, doc)]).await;
    }
    // The text may have been written by anybody: blanks, escapes and order do not matter. A number keeps its value, not
    // always its kind: `1e2` may come back as `100`.
    let spelled = match Doc::parse("{ \"b\" : \"\\u00e4\\/\" ,\n\t\"a\": 15e-1 }") {
        Ok(doc) => doc,
        Err(error) => panic!("{error}"),
    };
    room.set_doc(&work, true, spelled).await.holds(rule);
    room.holds_row(
        rule,
        &work,
        Some((true, json!({ "a": 1.5, "b": "\u{e4}/" }))),
    )
    .await;
}

async fn keys_come_back(scene: &Scene) {
    let names = [
        "",
        "~",
        "~v",
        "'",
        "\"",
        "\\",
        "%",
        "_",
        "a b",
        "?",
        "$1",
        "a/b",
        "..",
        "\u{e4}",
        "\u{1f600}",
        "\n",
        "NULL",
    ];
    let rule = "D1.1 (any string is a key)";
    let (room, namespace) = (scene.fresh(), scene.namespace());
    for (n, name) in (0..).zip(names) {
        for tray in [key(name, "~"), key("work", name)] {
            room.set(&tray, true, number(n)).await.holds(rule);
            room.holds_row(rule, &tray, Some((true, number(n)))).await;
        }
        let named = scene.at(&InstanceKey::new(&*namespace, name), 1);
        named
            .set(&key("work", "~"), false, number(n))
            .await
            .holds(rule);
    }
    for (n, name) in (0..).zip(names) {
        let named = scene.at(&InstanceKey::new(&*namespace, name), 1);
        named
            .holds_rows(rule, &[("work", "~", false, number(n))])
            .await;
        // The empty one is an id like any other.
        named.at(2).rows(rule).await;
        named
            .set(&key("work", "~"), false, number(n))
            .await
            .fenced(rule, &named.claim);
    }
}

async fn large_docs_come_back(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let rule = "D1.2 (a doc of 1 MB)";
    let text = json!({ "text": "\u{e4}b\"c".repeat(1 << 18) });
    let entries: Map<String, Value> = (0..50_000)
        .map(|n| (format!("entry {n}"), json!(n)))
        .collect();
    for doc in [text, Value::Object(entries), number(1)] {
        room.set(&work, true, doc.clone()).await.holds(rule);
        room.holds_row(rule, &work, Some((true, doc))).await;
    }
}

/// Not every store can keep a NUL within a text. What it cannot keep it refuses, whole, and before it acquires.
async fn a_doc_is_taken_or_refused_whole(scene: &Scene) {
    let (room, work, other) = (scene.fresh(), key("work", "~"), key("other", "~"));
    let awkward = json!({ "text": "a\u{0}b" });
    room.set(&work, true, number(1)).await.holds("D3.1");
    match room
        .at(2)
        .set_doc(&work, true, object(awkward.clone()))
        .await
    {
        Ok(()) => {
            room.at(2)
                .holds_row("D1.2", &work, Some((true, awkward.clone())))
                .await
        }
        Err(StoreError::Invalid(_)) => {
            let rule = "D6.1 (raised before the acquire)";
            room.holds_row(rule, &work, Some((true, number(1)))).await;
        }
        Err(other) => holds(
            "D6.1",
            &format!("a doc is taken or Invalid, and not {other:?}"),
            false,
        ),
    }
    if !room.batches() {
        return;
    }
    let (third, before) = (room.at(3), room.at(2).rows("D4.4").await);
    let ops = vec![
        set(&other, true, number(2)),
        set(&work, true, awkward.clone()),
        set(&key("third", "~"), true, number(3)),
    ];
    match third.batch(ops).await {
        Ok(()) => {
            let expected = [
                ("other", "~", true, number(2)),
                ("third", "~", true, number(3)),
                ("work", "~", true, awkward),
            ];
            third.holds_rows("D4.3", &expected).await;
        }
        Err(_) => {
            let after = third.rows("D4.4").await;
            holds(
                "D4.4",
                "an argument error in a batch leaves nothing applied",
                before == after,
            );
        }
    }
}
