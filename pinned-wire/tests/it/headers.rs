use pinned_wire::headers;

// W9
#[test]
fn headers_have_the_names_of_the_contract() {
    let names = [
        (headers::ATTESTATION, "pinboard-attestation"),
        (headers::PROXY_SECRET, "pinboard-proxy-secret"),
        (headers::EPOCH, "pinboard-epoch"),
        (headers::FROM, "pinboard-from"),
        (headers::SESSION, "pinboard-session"),
        (headers::SESSION_SECRET, "pinboard-session-secret"),
        (headers::SUBREQUEST_DEPTH, "pinboard-subrequest-depth"),
        (headers::CHAIN, "pinboard-chain"),
        (headers::REFUSAL, "pinned-refusal"),
        (headers::RETRY_AFTER, "retry-after"),
    ];
    for (header, name) in names {
        assert_eq!(header.as_str(), name);
    }
}
