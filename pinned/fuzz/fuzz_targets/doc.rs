//! A doc is the text of one JSON object, kept as it was read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinned::durability::Doc;
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    let object = serde_json::from_str::<Map<String, Value>>(text);
    let doc = Doc::parse(text);
    assert_eq!(doc.is_ok(), object.is_ok());
    if let Ok(doc) = doc {
        assert_eq!(doc.as_str(), text);
        let anew = Doc::from(doc.to_map());
        assert_eq!(Doc::parse(anew.as_str()), Ok(anew));
    }
});
