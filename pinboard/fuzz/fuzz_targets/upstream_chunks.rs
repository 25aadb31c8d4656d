//! A body in chunks is what a decoder that sees all of it at once says it is.

#![no_main]

mod upstream;

use std::io::ErrorKind;

use libfuzzer_sys::fuzz_target;
use upstream::{Outcome, outcome};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fuzz_target!(|input: (u8, &[u8])| {
    let (part, body) = input;
    let (expected, is_whole) = decode(body);
    let bytes = [HEAD, body].concat();
    for part in [usize::MAX, 1, usize::from(part) + 2] {
        let Outcome::Head { data, error, .. } = outcome(false, &bytes, part) else {
            panic!("the head is valid");
        };
        assert_eq!(data, expected);
        assert_eq!(error.is_none(), is_whole);
        assert!(matches!(
            error,
            None | Some(ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
        ));
    }
});

/// The data, and whether it is all.
fn decode(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut data = Vec::new();
    loop {
        let Some((line, rest)) = line(body) else {
            return (data, false);
        };
        let end = line
            .iter()
            .position(|byte| *byte == b';')
            .unwrap_or(line.len());
        let digits = std::str::from_utf8(&line[..end]).unwrap_or("");
        let is_text = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
        let is_hex = digits.len() <= 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let size = match u64::from_str_radix(digits, 16) {
            Ok(size) if is_hex && line.len() < 1023 && line.iter().all(is_text) => size,
            _ => return (data, false),
        };
        if size == 0 {
            return (data, trailers(rest));
        }
        let length = usize::try_from(size).map_or(rest.len(), |size| size.min(rest.len()));
        data.extend_from_slice(&rest[..length]);
        match rest[length..].strip_prefix(b"\r\n") {
            Some(next) if length as u64 == size => body = next,
            _ => return (data, false),
        }
    }
}

/// Whether there are trailers that end.
fn trailers(section: &[u8]) -> bool {
    let mut rest = section;
    let mut count = 0;
    while let Some((line, next)) = line(rest) {
        rest = next;
        if line.is_empty() {
            return section.len() - rest.len() <= 16 << 10 && count <= 64;
        }
        count += 1;
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return false;
        };
        let is_valid = http::HeaderName::from_bytes(&line[..colon]).is_ok()
            && http::HeaderValue::from_bytes(&line[colon + 1..]).is_ok();
        if !is_valid {
            return false;
        }
    }
    false
}

/// The first line without its end, and what comes after it; none if it does not end in CR LF.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let lf = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..lf].strip_suffix(b"\r")?;
    Some((line, &bytes[lf + 1..]))
}
