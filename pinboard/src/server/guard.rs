//! What a client of HTTP/1.1 sends, read strictly, before hyper reads it.
//!
//! Requests are smuggled where two readers of the same bytes disagree on where one ends. hyper refuses most of what can be
//! read in two ways; what it takes and another reader before it may not, is refused here: lines that end in a bare LF, a
//! `Transfer-Encoding` beside a `Content-Length`, a coding other than `chunked`, a length that is said twice, a fragment in
//! a target. Whatever passes has one reading, and hyper's is that one.

use std::mem;

/// Follows the requests on one connection. Nothing is kept of their bodies.
#[derive(Debug)]
pub struct Guard {
    state: State,
    line: Line,
    head: Head,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Empty lines before a request.
    Between,
    RequestLine,
    Header,
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    /// The end of line behind the data.
    ChunkEnd,
    Trailer,
    /// A connection that may have become something else, which is not known yet.
    Undecided,
    /// What comes is not ours to read.
    Free,
}

/// What a head has said so far of what comes after it.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    length: Option<u64>,
    is_chunked: bool,
    wants_upgrade: bool,
}

/// The line that is being read: its first bytes, which are all that is asked of it, and its length.
#[derive(Debug)]
struct Line {
    bytes: [u8; Line::KEPT],
    length: usize,
    last: u8,
}

/// The byte at this position must not be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its position in what was given.
    pub at: usize,
}

/// What has happened in what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often a head began or ended.
    pub edges: u32,
    /// From here on nothing was read: it comes after a request that asks for an upgrade, and that is undecided.
    pub early: Option<usize>,
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard {
    /// At the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Between,
            line: Line::new(),
            head: Head::default(),
        }
    }

    /// For a connection that is not ours to read.
    #[must_use]
    pub fn free() -> Self {
        Self {
            state: State::Free,
            ..Self::new()
        }
    }

    /// Whether a request has asked for an upgrade, and it has to be [decided](Self::decide) what comes after it.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.state == State::Undecided
    }

    /// Whether the connection speaks something that is not read here.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state == State::Free
    }

    /// What was asked for has been granted, or the next request comes.
    pub fn decide(&mut self, granted: bool) {
        if self.is_undecided() {
            self.state = if granted { State::Free } else { State::Between };
        }
    }

    /// Reads what has come.
    ///
    /// # Errors
    ///
    /// There is a byte that must not be passed on, nor anything after it.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<Seen, Refused> {
        let (mut at, mut seen) = (0, Seen::default());
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.state {
                State::Free => break,
                State::Undecided => {
                    seen.early = Some(at);
                    break;
                }
                State::Body(left) => {
                    let (passed, left) = skip(left, rest.len());
                    self.state = if left == 0 {
                        self.head.after_request()
                    } else {
                        State::Body(left)
                    };
                    passed
                }
                State::ChunkData(left) => {
                    let (passed, left) = skip(left, rest.len());
                    self.state = if left == 0 {
                        State::ChunkEnd
                    } else {
                        State::ChunkData(left)
                    };
                    passed
                }
                // One byte at a time; clients send at most one empty line.
                State::Between => match (rest[0], self.line.length) {
                    (b'\r', 0) => {
                        self.line.push(b"\r");
                        1
                    }
                    (b'\n', 1) => {
                        self.line.clear();
                        1
                    }
                    (b'\n', _) | (_, 1..) => return Err(Refused { at }),
                    (_, 0) => {
                        self.state = State::RequestLine;
                        self.head = Head::default();
                        seen.edges += 1;
                        0
                    }
                },
                State::RequestLine
                | State::Header
                | State::ChunkSize
                | State::ChunkEnd
                | State::Trailer => self
                    .read_line(rest, &mut seen)
                    .map_err(|Refused { at: within }| Refused { at: at + within })?,
            };
        }
        Ok(seen)
    }

    /// Reads up to the end of the line, if it is there. How much was read.
    fn read_line(&mut self, rest: &[u8], seen: &mut Seen) -> Result<usize, Refused> {
        let lf = memchr::memchr(b'\n', rest);
        let piece = &rest[..lf.unwrap_or(rest.len())];
        // It would be cut off unseen.
        if self.state == State::RequestLine
            && let Some(at) = memchr::memchr(b'#', piece)
        {
            return Err(Refused { at });
        }
        self.line.push(piece);
        let Some(lf) = lf else {
            return Ok(piece.len());
        };
        let refused = Refused { at: lf };
        if self.line.last != b'\r' {
            return Err(refused);
        }
        let was_in_head = matches!(self.state, State::RequestLine | State::Header);
        self.state = self
            .head
            .after_line(self.state, &self.line)
            .ok_or(refused)?;
        self.line.clear();
        if was_in_head && self.state != State::Header {
            seen.edges += 1;
        }
        Ok(lf + 1)
    }
}

impl Head {
    /// What comes after a line that is whole; `None` when the line cannot be.
    fn after_line(&mut self, state: State, line: &Line) -> Option<State> {
        match state {
            State::RequestLine => Some(State::Header),
            State::Header if line.is_empty() => self.after_head(),
            State::Header => {
                self.note(line)?;
                Some(State::Header)
            }
            State::ChunkSize => match line.chunk_size()? {
                0 => Some(State::Trailer),
                size => Some(State::ChunkData(size)),
            },
            State::ChunkEnd => line.is_empty().then_some(State::ChunkSize),
            State::Trailer if line.is_empty() => Some(self.after_request()),
            same => Some(same),
        }
    }

    /// Takes what a header says of what comes after the head.
    fn note(&mut self, line: &Line) -> Option<()> {
        match line.name() {
            Some(name) if name.eq_ignore_ascii_case(b"content-length") => {
                let length = decimal(line.value()?)?;
                // Also when it is the same.
                self.length.replace(length).is_none().then_some(())
            }
            Some(name) if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let is_chunked = line.value()?.eq_ignore_ascii_case(b"chunked");
                (is_chunked && !mem::replace(&mut self.is_chunked, true)).then_some(())
            }
            Some(name) => {
                self.wants_upgrade |= name.eq_ignore_ascii_case(b"upgrade");
                Some(())
            }
            None => Some(()),
        }
    }

    fn after_head(&self) -> Option<State> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => None,
            (None, true) => Some(State::ChunkSize),
            (None | Some(0), false) => Some(self.after_request()),
            (Some(length), false) => Some(State::Body(length)),
        }
    }

    fn after_request(&self) -> State {
        if self.wants_upgrade {
            State::Undecided
        } else {
            State::Between
        }
    }
}

impl Line {
    /// As long as the longest line that says anything of framing, with some spaces.
    const KEPT: usize = 64;

    fn new() -> Self {
        Self {
            bytes: [0; Self::KEPT],
            length: 0,
            last: 0,
        }
    }

    fn clear(&mut self) {
        self.length = 0;
        self.last = 0;
    }

    fn push(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else {
            return;
        };
        if let Some(room) = self.bytes.get_mut(self.length..) {
            let taken = room.len().min(piece.len());
            room[..taken].copy_from_slice(&piece[..taken]);
        }
        self.length += piece.len();
        self.last = *last;
    }

    /// Whether there is nothing but the CR.
    fn is_empty(&self) -> bool {
        self.length == 1
    }

    /// What is kept of it.
    fn kept(&self) -> &[u8] {
        &self.bytes[..self.length.min(Self::KEPT)]
    }

    /// The whole of it, without the CR.
    fn whole(&self) -> Option<&[u8]> {
        (self.length <= Self::KEPT).then(|| &self.bytes[..self.length - 1])
    }

    fn name(&self) -> Option<&[u8]> {
        let kept = self.kept();
        let colon = kept.iter().position(|byte| *byte == b':')?;
        // hyper refuses a name with a space at its end; here it shall not hide what it is the name of.
        Some(kept[..colon].trim_ascii_end())
    }

    fn value(&self) -> Option<&[u8]> {
        let whole = self.whole()?;
        let colon = whole.iter().position(|byte| *byte == b':')?;
        Some(whole[colon + 1..].trim_ascii())
    }

    fn chunk_size(&self) -> Option<u64> {
        let kept = self.kept();
        let digits = kept
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        // What is cut off is an extension.
        let is_apart = matches!(kept.get(digits), Some(b';' | b' ' | b'\t' | b'\r'));
        if digits == 0 || !is_apart {
            return None;
        }
        kept[..digits].iter().try_fold(0_u64, |size, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            size.checked_mul(16)?.checked_add(u64::from(digit))
        })
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// How much of `left` passes with `there` bytes, and what is left then.
fn skip(left: u64, there: usize) -> (usize, u64) {
    let passed = usize::try_from(left).map_or(there, |left| left.min(there));
    (passed, left - passed as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one read of everything, and reads of one byte each, come to: the same.
    fn pass(bytes: &[u8]) -> Result<(Guard, u32), Refused> {
        let (mut whole, mut apart, mut edges) = (Guard::new(), Guard::new(), 0);
        let at_once = whole.pass(bytes);
        let one_by_one = bytes.iter().enumerate().try_for_each(|(at, byte)| {
            let seen = apart.pass(&[*byte]).map_err(|_| Refused { at })?;
            edges += seen.edges;
            Ok(())
        });
        assert_eq!(at_once.map(|seen| seen.edges), one_by_one.map(|()| edges));
        assert_eq!(whole.state, apart.state);
        at_once.map(|seen| (whole, seen.edges))
    }

    fn refuses(bytes: &[u8], at: usize) {
        assert_eq!(
            pass(bytes).map(|(guard, _)| guard.state),
            Err(Refused { at }),
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }

    fn reads(bytes: &[u8], requests: u32) {
        let (guard, edges) = pass(bytes)
            .unwrap_or_else(|refused| panic!("{refused:?} {}", String::from_utf8_lossy(bytes)));
        assert_eq!((guard.state, edges), (State::Between, 2 * requests));
    }

    #[test]
    fn requests_are_told_apart_whatever_their_bodies_look_like() {
        reads(b"", 0);
        reads(b"\r\n\r\n", 0);
        reads(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1);
        reads(
            b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\na\n\nb#cGET / HTTP/1.1\r\n\r\n",
            2,
        );
        reads(
            b"POST / HTTP/1.1\r\ncontent-length:0\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n",
            2,
        );
        reads(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
              3\r\n\n\n\n\r\nA;x=\"y\"\r\n0123456789\r\n0 \r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            2,
        );
    }

    #[test]
    fn a_line_ends_in_cr_lf() {
        refuses(b"GET / HTTP/1.1\nHost: a\r\n\r\n", 14);
        refuses(b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 23);
        refuses(b"GET / HTTP/1.1\r\nHost: a\r\n\n", 25);
        refuses(b"\nGET / HTTP/1.1\r\n\r\n", 0);
        let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let head = chunked.len();
        refuses(&[&chunked[..], b"3\nabc"].concat(), head + 1);
        refuses(&[&chunked[..], b"3\r\nabc\n"].concat(), head + 6);
        refuses(&[&chunked[..], b"0\r\nX: y\n\r\n"].concat(), head + 7);
        refuses(&[&chunked[..], b"0\r\n\n"].concat(), head + 3);
    }

    #[test]
    fn a_length_is_said_once_and_in_digits() {
        for head in [
            &b"Content-Length: 1\r\nContent-Length: 1\r\n"[..],
            b"Content-Length: 1\r\nContent-Length: 2\r\n",
            b"Content-Length: 1, 1\r\n",
            b"Content-Length: +1\r\n",
            b"Content-Length: 0x1\r\n",
            b"Content-Length:\r\n",
            b"Content-Length: 18446744073709551616\r\n",
            b"Content-Length : x\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: gzip, chunked\r\n",
            b"Transfer-Encoding: identity\r\n",
            b"Transfer-Encoding: \"chunked\"\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding\t: identity\r\n",
        ] {
            let bytes = [b"POST / HTTP/1.1\r\n", head, b"\r\n"].concat();
            assert!(pass(&bytes).is_err(), "{:?}", String::from_utf8_lossy(head));
        }
        let hidden = format!("Content-Length:{}5\r\n", " ".repeat(Line::KEPT));
        assert!(pass(format!("POST / HTTP/1.1\r\n{hidden}\r\n").as_bytes()).is_err());
    }

    #[test]
    fn a_coding_and_a_length_do_not_go_together() {
        for head in [
            &b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        ] {
            let bytes = [b"POST / HTTP/1.1\r\n", head].concat();
            refuses(&bytes, bytes.len() - 1);
        }
    }

    #[test]
    fn chunks_have_sizes() {
        for body in [
            &b"\r\n"[..],
            b"x\r\n",
            b" 5\r\n",
            b"-1\r\n",
            b"5x\r\n",
            b"10000000000000000\r\n",
            b"3\r\nabcd\r\n",
        ] {
            let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            let bytes = [&head[..], body].concat();
            assert!(pass(&bytes).is_err(), "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_target_has_no_fragment() {
        refuses(b"GET /a/b#c HTTP/1.1\r\n", 8);
        reads(b"GET / HTTP/1.1\r\nX: #\r\n\r\n", 1);
    }

    #[test]
    fn what_comes_after_an_upgrade_waits_for_a_decision() {
        let head = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
        let mut guard = Guard::new();
        assert_eq!(
            guard.pass(head),
            Ok(Seen {
                edges: 2,
                early: None
            })
        );
        assert!(guard.is_undecided());
        guard.decide(false);
        assert_eq!(
            guard.pass(b"GET /"),
            Ok(Seen {
                edges: 1,
                early: None
            })
        );
        assert_eq!(guard.pass(b"\n"), Err(Refused { at: 0 }));

        let mut guard = Guard::new();
        let early = [&head[..], b"\n"].concat();
        assert_eq!(
            guard.pass(&early),
            Ok(Seen {
                edges: 2,
                early: Some(head.len())
            })
        );
        guard.decide(true);
        assert_eq!(guard.pass(b"\n\n"), Ok(Seen::default()));

        // With a body before it.
        let mut guard = Guard::new();
        let with_body = b"POST / HTTP/1.1\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nab";
        guard.pass(with_body).expect("strict");
        assert!(guard.is_undecided());
    }
}
