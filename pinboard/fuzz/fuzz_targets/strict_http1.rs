//! Bytes that pass the strict reading are read alike by others, and however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinboard::server::strict::Guard;

fuzz_target!(|bytes: &[u8]| {
    let mut whole = Guard::new();
    let at_once = whole.pass(bytes);
    for size in [1, 3, 7] {
        let (mut apart, mut edges, mut early) = (Guard::new(), 0, false);
        let in_pieces: Result<(), usize> =
            bytes
                .chunks(size)
                .enumerate()
                .try_for_each(|(piece, bytes)| {
                    let seen = apart
                        .pass(bytes)
                        .map_err(|refused| piece * size + refused.at)?;
                    edges += seen.edges;
                    early |= seen.early.is_some();
                    Ok(())
                });
        match (at_once, in_pieces) {
            (Ok(seen), Ok(())) => assert_eq!((seen.edges, seen.early.is_some()), (edges, early)),
            (Err(refused), Err(at)) => assert_eq!(refused.at, at),
            (at_once, in_pieces) => {
                panic!("{at_once:?} at once, {in_pieces:?} in pieces of {size}")
            }
        }
    }
    // Where the first head ends, if its parser takes it at all.
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if at_once.is_ok()
        && let Ok(httparse::Status::Complete(end)) = request.parse(bytes)
    {
        let edges = |bytes: &[u8]| Guard::new().pass(bytes).map(|seen| seen.edges);
        assert_eq!(edges(&bytes[..end]), Ok(2));
        assert_eq!(edges(&bytes[..end - 1]), Ok(1));
    }
});
