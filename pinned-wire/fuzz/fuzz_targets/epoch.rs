//! What reads as an epoch is digits only, and reads the same without its leading zeros.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinned_wire::epoch;

fuzz_target!(|value: &[u8]| {
    let Ok(read) = epoch::parse(value) else {
        return;
    };
    assert!(read <= epoch::MAX);
    assert!(value.iter().all(u8::is_ascii_digit));
    let zeros = value
        .iter()
        .take_while(|byte| **byte == b'0')
        .count()
        .min(value.len() - 1);
    assert_eq!(read.to_string().as_bytes(), &value[zeros..]);
});
