//! What a client says never passes for what the control plane says, and no value ends a line.

#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pinboard::proxy::rules::{Frames, RequestRules, strip_response, write_request};

/// Names that mean something, and two that do not.
const NAMES: [&str; 18] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "host",
    "expect",
    "upgrade",
    "cookie",
    "authorization",
    "sec-websocket-protocol",
    "pinboard-epoch",
    "pinboard_x",
    "pinned-refusal",
    "x-forwarded-for",
    "x-one",
    "x-two",
];

fuzz_target!(|data: &[u8]| {
    let mut data = Unstructured::new(data);
    if let Ok(()) = run(&mut data) {
        frames(data.take_rest());
    }
});

fn run(data: &mut Unstructured<'_>) -> Result<()> {
    let rules = RequestRules {
        strip_authorization: data.arbitrary()?,
        strip_bearer_subprotocol: data.arbitrary()?,
        join_cookies: data.arbitrary()?,
        keep_trailer: data.arbitrary()?,
    };
    let mut headers = HeaderMap::new();
    while data.ratio(7, 8)? {
        let name = HeaderName::from_static(data.choose(&NAMES)?);
        let length = data.int_in_range(0..=24)?;
        if let Ok(value) = HeaderValue::from_bytes(data.bytes(length)?) {
            headers.append(name, value);
        }
    }
    let mut written = Vec::new();
    write_request(&mut written, &headers, rules);
    for line in written.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").expect("whole lines");
        assert!(!line.contains(&b'\r'));
        let colon = line.iter().position(|byte| *byte == b':').expect("a name");
        let name = std::str::from_utf8(&line[..colon]).expect("text");
        assert!(!name.starts_with("pinboard"));
        assert!(
            ![
                "connection",
                "te",
                "transfer-encoding",
                "content-length",
                "host",
                "upgrade"
            ]
            .contains(&name)
        );
        assert!(!rules.strip_authorization || name != "authorization");
        let is_listed = headers.get_all("connection").iter().any(|list| {
            list.as_bytes()
                .split(|byte| *byte == b',')
                .any(|token| token.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        });
        assert!(!is_listed, "{name}");
    }
    strip_response(&mut headers);
    for name in headers.keys() {
        assert!(
            !name.as_str().starts_with("pinboard")
                && name != "pinned-refusal"
                && name != "connection"
        );
    }
    Ok(())
}

/// They are followed alike however they are cut.
fn frames(bytes: &[u8]) {
    let (mut whole, mut apart) = (Frames::default(), Frames::default());
    whole.pass(bytes);
    bytes.chunks(3).for_each(|piece| apart.pass(piece));
    assert_eq!(whole.takes_another(), apart.takes_another());
}
