use pinned_wire::epoch::{MAX, MalformedEpoch, parse};
use proptest::prelude::*;

// H12.1
#[test]
fn digits_of_any_number_are_an_epoch() {
    assert_eq!(parse(b"0"), Ok(0));
    assert_eq!(parse(b"0042"), Ok(42));
    assert_eq!(parse("0".repeat(10_000).as_bytes()), Ok(0));
    assert_eq!(parse(b"9223372036854775807"), Ok(MAX));
    assert_eq!(parse(format!("{:0>100}", MAX).as_bytes()), Ok(MAX));
}

// H12.1
#[test]
fn anything_else_is_malformed() {
    let malformed = [
        "", "+1", "-1", "-0", " 1", "1 ", "1_000", "1.0", "1e3", "0x10", "a", "١", "\0", "1\n",
    ];
    for value in malformed {
        assert_eq!(parse(value.as_bytes()), Err(MalformedEpoch), "{value:?}");
    }
    assert_eq!(parse(&[0xff]), Err(MalformedEpoch));
    assert_eq!(MalformedEpoch.to_string(), "malformed placement epoch");
}

// H12.1
#[test]
fn an_epoch_that_no_store_can_keep_is_malformed() {
    let too_large = [
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        &"9".repeat(1_000),
    ];
    for value in too_large {
        assert_eq!(parse(value.as_bytes()), Err(MalformedEpoch), "{value}");
    }
}

proptest! {
    #[test]
    fn every_epoch_reads_back(epoch in 0..=MAX, zeros in 0..50_usize) {
        prop_assert_eq!(parse(format!("{}{epoch}", "0".repeat(zeros)).as_bytes()), Ok(epoch));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
        prop_assert!(digits || parse(&bytes).is_err());
    }
}
