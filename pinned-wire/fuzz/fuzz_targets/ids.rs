//! A valid id means the same in every spelling, and survives a path unchanged; a valid namespace is one segment.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinned_wire::ids::{decode_id, invalid_id_reason, invalid_namespace_reason};

fuzz_target!(|segment: &str| {
    if let Ok(id) = decode_id(segment)
        && invalid_id_reason(&id).is_none()
    {
        assert!((1..=256).contains(&id.len()));
        assert_eq!(decode_id(&id).as_deref(), Ok(&*id));
        let encoded: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(decode_id(&encoded).as_deref(), Ok(&*id));
    }
    if invalid_namespace_reason(segment).is_none() {
        assert!(segment.is_ascii() && segment.starts_with('/'));
        assert_eq!(segment.matches('/').count(), 1);
        assert!(
            !segment.contains(|c: char| c.is_whitespace() || c.is_control() || "%?#{}".contains(c))
        );
    }
});
