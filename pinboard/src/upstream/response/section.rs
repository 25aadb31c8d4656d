//! Finding the end of a head, or of the trailers.

use super::Malformed;

/// The search for the empty line at the end of a section of lines, each of which ends in CR LF.
///
/// It looks at each byte once, however the section arrives, and refuses a line that ends in a bare LF: others on the
/// way may see the end of a line, or of the head, in different places then. A bare CR is refused by the parser.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Section {
    limit: usize,
    /// Up to where it has looked.
    at: usize,
    /// Where the line that it is in began.
    line: usize,
}

impl Section {
    /// A section of at most `limit` bytes.
    pub(in crate::upstream) fn new(limit: usize) -> Self {
        Self {
            limit,
            at: 0,
            line: 0,
        }
    }

    /// How long the section at the start of `bytes` is, its empty line included; `None` when there is more to come.
    /// `bytes` starts with what it did in the last call.
    pub(in crate::upstream) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let seen = &bytes[..bytes.len().min(self.limit)];
        while let Some(found) = memchr::memchr(b'\n', &seen[self.at..]) {
            let lf = self.at + found;
            if lf == self.line || seen[lf - 1] != b'\r' {
                return Err(Malformed("a line that ends in a bare LF"));
            }
            let is_empty = lf - 1 == self.line;
            self.at = lf + 1;
            self.line = self.at;
            if is_empty {
                return Ok(Some(self.at));
            }
        }
        self.at = seen.len();
        if seen.len() == self.limit {
            return Err(Malformed("a head, or trailers, longer than they may be"));
        }
        Ok(None)
    }
}
