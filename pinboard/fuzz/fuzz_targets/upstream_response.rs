//! What a worker answers is the same however it is cut, and a body that is taken is never longer than what came.

#![no_main]

mod upstream;

use libfuzzer_sys::fuzz_target;
use upstream::{Outcome, outcome};

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_head, part, bytes) = input;
    let whole = outcome(is_head, bytes, usize::MAX);
    assert_eq!(outcome(is_head, bytes, 1), whole);
    assert_eq!(outcome(is_head, bytes, usize::from(part) + 2), whole);
    if let Outcome::Head {
        status,
        headers,
        data,
        error,
        ..
    } = whole
    {
        assert!(bytes.starts_with(b"HTTP/1.") && status >= 200);
        assert!(data.len() < bytes.len() && !(is_head && !data.is_empty()));
        let length = headers.get_all("content-length").iter().count();
        let coding = headers.get_all("transfer-encoding").iter().count();
        assert!(length + coding <= 1);
        if let (Some(length), 200, None, false) =
            (headers.get("content-length"), status, error, is_head)
        {
            let length = length.to_str().ok().and_then(|length| length.parse().ok());
            assert_eq!(length, Some(data.len()));
        }
    }
});
