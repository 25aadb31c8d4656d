//! What is read of a chain of calls reads the same when it is written again, and stays within its bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinned_wire::chain::{Link, MOST_LINKS, header, read};

fuzz_target!(|text: &str| {
    let Ok(links) = read(text) else {
        return;
    };
    assert!((1..=MOST_LINKS).contains(&links.len()));
    let parsed: Vec<Link> = links
        .iter()
        .map(|link| Link::parse(link).expect("it was checked"))
        .collect();
    let written = header(&parsed);
    let again = read(&written).expect("it was just written");
    assert!(links.ends_with(&again));
});
