//! Understanding what a worker answers. Nothing here reads: each part is given what has come so far, and gives the
//! same result however the bytes were cut.

mod body;
mod chunked;
mod fields;
mod head;
mod section;

pub(super) use body::{Decoded, Decoder};
pub(super) use head::ResponseHead;
pub(super) use section::Section;

use std::io;

/// What came is not an HTTP/1.1 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl From<Malformed> for io::Error {
    fn from(Malformed(what): Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, what)
    }
}
