//! A stored row is refused, or opens to a tray whose row opens to the same again.

#![no_main]

#[path = "../../tests/it/stored/every.rs"]
mod every;

use libfuzzer_sys::fuzz_target;
use pinned::durability::Doc;

use every::{Every, Later, opens_to_the_same_again};

fuzz_target!(|text: &str| {
    if let Ok(doc) = Doc::parse(text) {
        opens_to_the_same_again::<Every>(&doc);
        opens_to_the_same_again::<Later>(&doc);
    }
});
