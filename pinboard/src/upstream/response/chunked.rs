//! A body in chunks.

use bytes::{Buf as _, BytesMut};
use http::HeaderMap;

use super::{Decoded, Malformed, Section, fields};

/// The longest line with the size of a chunk, its extensions included.
const MOST_SIZE_LINE: usize = 1 << 10;
/// The most bytes of trailers.
const MOST_TRAILERS: usize = 16 << 10;
/// The most trailers.
const MOST_TRAILER_FIELDS: usize = 64;
/// What is left of a body once the data of its last chunk was taken, if it has no trailers.
const PLAIN_END: &[u8] = b"\r\n0\r\n\r\n";

/// Takes a body out of its chunks.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Chunked {
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the line with a chunk's size; so many bytes of it have no end of line.
    Size {
        looked: usize,
    },
    /// So many bytes of data are left of the chunk.
    Data(u64),
    /// The end of line behind the data.
    DataEnd,
    Trailers(Section),
    Done,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self {
            state: State::Size { looked: 0 },
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes the next part off the front of `buffer`.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, Malformed> {
        loop {
            match &mut self.state {
                State::Size { looked } => match memchr::memchr(b'\n', &buffer[*looked..]) {
                    Some(found) if *looked + found < MOST_SIZE_LINE => {
                        let lf = *looked + found;
                        let size = size(&buffer[..lf])?;
                        buffer.advance(lf + 1);
                        self.state = match size {
                            0 => State::Trailers(Section::new(MOST_TRAILERS)),
                            size => State::Data(size),
                        };
                    }
                    None if buffer.len() < MOST_SIZE_LINE => {
                        *looked = buffer.len();
                        return Ok(Decoded::More);
                    }
                    _ => return Err(Malformed("a chunk whose size takes too long a line")),
                },
                State::Data(left) => {
                    if buffer.is_empty() {
                        return Ok(Decoded::More);
                    }
                    let data = super::body::take(buffer, left);
                    if *left == 0 {
                        self.state = State::DataEnd;
                        self.take_plain_end(buffer);
                    }
                    return Ok(Decoded::Data(data));
                }
                State::DataEnd => match buffer.get(..2) {
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        self.state = State::Size { looked: 0 };
                    }
                    None if buffer.is_empty() || buffer[0] == b'\r' => return Ok(Decoded::More),
                    _ => return Err(Malformed("a chunk that is longer than it says")),
                },
                State::Trailers(section) => {
                    let Some(end) = section.end(buffer)? else {
                        return Ok(Decoded::More);
                    };
                    let trailers = trailers(buffer.split_to(end))?;
                    self.state = State::Done;
                    if let Some(trailers) = trailers {
                        return Ok(Decoded::Trailers(trailers));
                    }
                }
                State::Done => return Ok(Decoded::End),
            }
        }
    }

    /// Ends together with its last data where that can be seen: whoever reads the body need not ask once more, and the
    /// connection is free.
    fn take_plain_end(&mut self, buffer: &mut BytesMut) {
        if buffer.starts_with(PLAIN_END) {
            buffer.advance(PLAIN_END.len());
            self.state = State::Done;
        }
    }
}

/// The size in a line that ends before its LF. Extensions are skipped; nobody has found a use for them.
fn size(line: &[u8]) -> Result<u64, Malformed> {
    let malformed = Malformed("the size of a chunk");
    let line = line.strip_suffix(b"\r").ok_or(malformed)?;
    let digits = line
        .iter()
        .position(|byte| !byte.is_ascii_hexdigit())
        .unwrap_or(line.len());
    let (digits, extensions) = line.split_at(digits);
    let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    if !matches!(digits.len(), 1..=16)
        || !matches!(extensions.first(), None | Some(b';'))
        || !extensions.iter().all(is_text)
    {
        return Err(malformed);
    }
    // At most sixteen digits of four bits each.
    Ok(digits.iter().fold(0, |size, digit| {
        let value = char::from(*digit).to_digit(16).unwrap_or(0);
        size << 4 | u64::from(value)
    }))
}

fn trailers(section: BytesMut) -> Result<Option<HeaderMap>, Malformed> {
    if section.len() == 2 {
        return Ok(None);
    }
    let section = section.freeze();
    let mut lines = [httparse::EMPTY_HEADER; MOST_TRAILER_FIELDS];
    match httparse::parse_headers(&section, &mut lines).map_err(fields::refusal)? {
        httparse::Status::Complete((length, parsed)) if length == section.len() => {
            fields::map(&section, parsed).map(Some)
        }
        _ => Err(Malformed("an empty line inside the trailers")),
    }
}
