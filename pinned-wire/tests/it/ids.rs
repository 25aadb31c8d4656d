use std::borrow::Cow;

use pinned_wire::ids::{NotText, decode_id, invalid_id_reason, invalid_namespace_reason};
use proptest::prelude::*;

const ALPHABET: &str = "id must contain only [A-Za-z0-9._~-]";

// H1.4
#[test]
fn an_id_is_one_to_256_unreserved_characters() {
    let longest = "a".repeat(256);
    for id in [
        "a",
        "A",
        "0",
        "~",
        "-",
        "_",
        "...",
        ".a",
        "a.b_c~d-E9",
        longest.as_str(),
    ] {
        assert_eq!(invalid_id_reason(id), None, "{id}");
    }
}

// H1.4
#[test]
fn a_bad_id_is_refused_for_its_first_reason() {
    let (ascii, wide) = ("a".repeat(257), "é".repeat(257));
    let cases = [
        ("", "id must be non-empty"),
        (ascii.as_str(), "id must be at most 256 characters"),
        (wide.as_str(), "id must be at most 256 characters"),
        ("a b", ALPHABET),
        ("$", ALPHABET),
        ("a/b", ALPHABET),
        ("%61", ALPHABET),
        ("é", ALPHABET),
        ("a\n", ALPHABET),
        ("a\0", ALPHABET),
    ];
    for (id, reason) in cases {
        assert_eq!(invalid_id_reason(id), Some(reason), "{id:?}");
    }
    assert_eq!(
        invalid_id_reason(&"é".repeat(256)),
        Some(ALPHABET),
        "characters are counted, not bytes"
    );
}

/// HTTP clients normalise them away.
#[test]
fn dot_segments_are_no_ids() {
    for id in [".", ".."] {
        assert_eq!(invalid_id_reason(id), Some("id must not be . or .."));
    }
}

// H1.1
#[test]
fn a_namespace_is_a_slash_and_one_segment() {
    for namespace in [
        "/a",
        "/threads",
        "/Threads-2",
        "/a.b~c_d",
        "/...",
        "/@scope",
        "/a:b",
    ] {
        assert_eq!(invalid_namespace_reason(namespace), None, "{namespace}");
    }
    for namespace in [
        "", "/", "a", "threads/", "//", "/a/", "/a/b", "//a", "/a b", "/ ", "/a\t", "/a\n",
        "/\u{a0}a",
    ] {
        let reason = invalid_namespace_reason(namespace)
            .unwrap_or_else(|| panic!("{namespace:?} is refused"));
        assert!(
            reason.contains("single path segment"),
            "{namespace:?}: {reason}"
        );
    }
}

#[test]
fn a_namespace_that_clients_or_routers_would_change_is_refused_with_the_reason() {
    let cases = [
        ("/a%62", "need no encoding"),
        ("/a?", "need no encoding"),
        ("/a#b", "need no encoding"),
        ("/{id}", "need no encoding"),
        ("/a\\b", "need no encoding"),
        ("/café", "need no encoding"),
        ("/a\u{7}", "control"),
        ("/.", "/. or /.."),
        ("/..", "/. or /.."),
        ("/:id", "parameters"),
        ("/*rest", "parameters"),
        ("/_pinned", "reserved"),
        ("/_anything", "reserved"),
    ];
    for (namespace, part) in cases {
        let reason = invalid_namespace_reason(namespace)
            .unwrap_or_else(|| panic!("{namespace:?} is refused"));
        assert!(reason.contains(part), "{namespace:?}: {reason}");
    }
}

// H1.2
#[test]
fn an_id_segment_is_decoded_exactly_once() {
    assert_eq!(decode_id("%61lice").as_deref(), Ok("alice"));
    assert_eq!(decode_id("%24").as_deref(), Ok("$"));
    assert_eq!(decode_id("a%2Fb").as_deref(), Ok("a/b"));
    assert_eq!(decode_id("%2561").as_deref(), Ok("%61"));
    assert_eq!(
        decode_id("a+b").as_deref(),
        Ok("a+b"),
        "a plus is no space in a path"
    );
    assert_eq!(decode_id("").as_deref(), Ok(""));
    for broken in ["%", "%6", "%zz", "a%"] {
        let id = decode_id(broken).expect("left as it is");
        assert_eq!(invalid_id_reason(&id), Some(ALPHABET), "{broken}");
    }
}

// H1.2
#[test]
fn a_segment_that_is_not_text_reads_as_a_bad_id() {
    for segment in ["%ff", "%C3", "a%80"] {
        assert_eq!(decode_id(segment), Err(NotText));
    }
    assert_eq!(NotText.to_string(), ALPHABET);
}

#[test]
fn a_plain_segment_is_borrowed() {
    assert!(matches!(decode_id("alice"), Ok(Cow::Borrowed("alice"))));
}

proptest! {
    #[test]
    fn every_spelling_of_an_id_is_the_same_id(id in "[A-Za-z0-9._~-]{1,256}", odd: Vec<bool>) {
        let odd = odd.into_iter().chain(std::iter::repeat(false));
        let spelled: String = id.bytes().zip(odd).map(|(byte, encode)| {
            if encode { format!("%{byte:02x}") } else { char::from(byte).to_string() }
        }).collect();
        let decoded = decode_id(&spelled).expect("ASCII");
        prop_assert_eq!(&*decoded, id.as_str());
        prop_assert_eq!(invalid_id_reason(&decoded).is_some(), matches!(id.as_str(), "." | ".."));
    }

    #[test]
    fn an_accepted_id_survives_a_url_unchanged(id: String) {
        if invalid_id_reason(&id).is_none() {
            prop_assert!(matches!(decode_id(&id), Ok(Cow::Borrowed(same)) if same == id));
        }
    }

    #[test]
    fn an_accepted_namespace_is_a_valid_path(namespace in "/?\\PC{0,12}") {
        if invalid_namespace_reason(&namespace).is_none() {
            let uri: http::Uri = namespace.parse().expect("a path");
            prop_assert_eq!(uri.path(), namespace);
        }
    }
}
